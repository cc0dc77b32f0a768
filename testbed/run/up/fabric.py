"""The program of a wire or router that is on its own: sets itself up, measures, samples, ends.

It does not end before it is told to: whoever ends first would end all others. What went wrong
is said in the meeting place, and who leads makes a verdict of it.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from testbed.contract.health import Health
from testbed.contract.meeting import BARRIER, MEASURE, STOP, Meeting, Said, drain
from testbed.contract.network import Network, Node
from testbed.contract.note import NoRunError, next_run, run_of
from testbed.contract.plan import Plan
from testbed.errors import ExitStatus, FidelityError, TestbedError
from testbed.fidelity.calibrate import Effort, calibrate_links
from testbed.fidelity.headroom import measure_costs
from testbed.fidelity.precision import LIVE
from testbed.fidelity.row import CalibrationRow
from testbed.lab.configure import wait_for_carriers
from testbed.lab.container.fabric import set_up
from testbed.lab.container.netem import explained
from testbed.lab.container.room import open_runs, started_ns
from testbed.lab.container.stay import end_when_stopped, stay
from testbed.lab.namespace import HERE, Namespaces
from testbed.lab.sampler import Sampler
from testbed.lab.wires import Wires
from testbed.run.up.record import ROWS, SAMPLES

OPENS = "opens"
_ATTEMPTS = 3
"""Other containers start meanwhile: a figure that is off because of them is right later."""
_WAIT_NS = 900 * 10**9
"""For who leads."""
_SAMPLE_NS = 100_000_000
_LOOK_NS = 500_000_000
"""How often a wire reads its shaping back while agents work, in time of the host's clock."""


def carry(run: Path, name: str, health: Health) -> None:
    """The life of one wire or router.

    Raises:
        TestbedError: it cannot be what the plan says, or it ceased to be that.
    """
    plan = Plan.model_validate_json((run / "plan.json").read_text(encoding="utf-8"))
    network = plan.network
    node = next(node for node in network.nodes if node.name == name)
    mine = network.model_copy(
        update={
            "nodes": (node,),
            "links": tuple(link for link in network.links if link.wire == name),
        }
    )
    meeting = Meeting(run)
    _build(network, node, mine)
    with Wires(mine, {name: HERE}) as wires:
        meeting.say(Said.BUILT, name)
        if mine.links:
            meeting.wait(Said.WORD, f"{MEASURE}{name}", time.time_ns() + _WAIT_NS)
            _prove(meeting, mine, wires)
        health.say_ready()
        if mine.links:
            _sample(plan, meeting, name, wires)
    meeting.say(Said.ENDED, name, "0")


def _build(network: Network, node: Node, mine: Network) -> None:
    namespaces = Namespaces({node.name: HERE})
    try:
        set_up(network, node, namespaces)
        wait_for_carriers(namespaces, mine)
    finally:
        namespaces.close()


def _prove(meeting: Meeting, mine: Network, wires: Wires) -> None:
    """Measures, applies anew, reads back: what agents get is fresh, and is what was measured."""
    (name,) = (node.name for node in mine.nodes)
    costs = measure_costs(mine, {name: HERE}, within=True)
    wires.apply()
    rows: list[CalibrationRow] = []
    for link in mine.links:
        alone = mine.model_copy(update={"links": (link,)})
        for _ in range(_ATTEMPTS):
            found = calibrate_links(alone, {name: HERE}, Effort.QUICK, LIVE, within=True)
            if all(row.ok for row in found):
                break
        rows.extend(found)
    wires.apply()
    sections = {
        "costs": [asdict(costs)],
        "measured": [row.model_dump(mode="json") for row in rows],
        "fields": [field.model_dump(mode="json") for field in wires.read_back()],
    }
    meeting.say(Said.MEASURED, f"{name}{ROWS}", json.dumps(sections))


def _sample(plan: Plan, meeting: Meeting, name: str, wires: Wires) -> None:
    """Samples until the run stops, and looks every second whether the shaping is still there."""
    barrier = int(meeting.wait(Said.WORD, BARRIER, time.time_ns() + _WAIT_NS))
    path = meeting.folder / Said.MEASURED.value / f"{name}{SAMPLES}"
    path.unlink(missing_ok=True)
    scale, step = plan.scale, plan.scale.lab_ns(_SAMPLE_NS)
    with (
        Sampler(wires, path, barrier, scale, live=True) as sampler,
        meeting.news(Said.WORD) as news,
    ):
        tick = look = barrier
        while meeting.heard(Said.WORD, STOP) is None:
            drain(news, max(0.0, (tick - time.time_ns()) / 1e9))
            if time.time_ns() < tick:
                continue
            sampler.lateness.wait(scale.emulated_ns(time.time_ns() - tick))
            sampler.sample(scale.emulated_ns(tick - barrier))
            tick += step
            if tick >= look:
                _require_shaped(name, wires)
                look = tick + _LOOK_NS
        sampler.sample(scale.emulated_ns(time.time_ns() - barrier))


def _require_shaped(name: str, wires: Wires) -> None:
    wrong = [field for field in wires.read_back() if not field.ok]
    if wrong:
        first = wrong[0]
        raise FidelityError(
            "keep the links shaped", name,
            f"{len(wrong)} fields are no longer as planned, first {first.link} "
            f"{first.direction.value} {first.device} {first.field}: {first.applied}",
            "something else changed the container's devices",
        )  # fmt: skip


def _say_ended(runs: Path, name: str, words: str) -> None:
    Meeting(run_of(runs)).say(Said.ENDED, name, words)


def _run(runs: Path, opens: bool) -> Path:
    """The run folder; who opens the folder of all runs starts before there is a run."""
    if not opens:
        return run_of(runs)
    open_runs(runs)
    return next_run(runs, started_ns(), time.time_ns() + _WAIT_NS)


def main(folder: str, name: str, *words: str) -> int:
    """Ends when it is stopped: with 0, or the status of what went wrong before that.

    Args:
        words: ``opens``, where this container opens the folder of all runs.
    """
    end_when_stopped()
    health = Health()
    status = 0
    try:
        carry(_run(Path(folder), OPENS in words), name, health)
    except NoRunError:
        print("there is no run to carry links for")
    except TestbedError as error:
        traceback.print_exc()
        found = explained(error)
        status = int(found.exit_status)
        _say_ended(Path(folder), name, f"{status} {found}")
    except (OSError, StopIteration) as error:
        traceback.print_exc()
        status = int(ExitStatus.INVALID)
        _say_ended(Path(folder), name, f"{status} {error}")
    stay()
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
