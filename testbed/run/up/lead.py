"""The client's container: the client as a child, and the lead of the whole run.

It says when links are proven, when all go on, and when they stop; then it judges. Its exit status
is the verdict's, so that ``docker compose up --exit-code-from client`` ends with it.
"""

from __future__ import annotations

import math
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from testbed.contract.health import Health
from testbed.contract.lateness import BARRIER_FILE
from testbed.contract.note import NoRunError, run_of
from testbed.contract.plan import Plan
from testbed.errors import ExitStatus, TestbedError
from testbed.lab.container.child import running_child
from testbed.run.hostwatch import HostWatch
from testbed.run.up.record import gather_costs, gather_fidelity, gather_samples
from testbed.run.up.stages import Stages

if TYPE_CHECKING:
    from testbed.plan.headroom import Headroom
    from testbed.run.execute import Finished


def lead(run: Path, node: str, health: Health) -> Finished:
    """The whole run, from containers that start to the verdict.

    Raises:
        TestbedError: the run did not take place, or cannot be analysed.
    """
    began = time.monotonic()
    plan = Plan.model_validate_json((run / "plan.json").read_text(encoding="utf-8"))
    stages = Stages(run, plan)
    with running_child("testbed_agents.contained", str(run.parents[1]), node, plan.clock):
        stages.build()
        stages.measure()
        if plan.demand is not None:
            from testbed.run.headroom import refuse_beyond

            refuse_beyond(plan, plan.demand, gather_costs(run, plan.network), run, _slower)
        gather_fidelity(run, plan.network)
        stages.load()
        health.say_ready()
        host = HostWatch()
        (run / BARRIER_FILE).write_text(str(stages.barrier_ns), encoding="ascii")
        stages.work(host.look)
        stages.stop()
    host.tell(run, plan.scale)
    gather_samples(run, plan.network)
    return _judged(run, time.monotonic() - began)


def _slower(found: Headroom) -> str:
    return f"TESTBED_SLOW={math.ceil(found.slow)} docker compose up --exit-code-from client"


def _judged(run: Path, wall_s: float) -> Finished:
    """Figures, verdict and report. What they need is loaded only now: at the start of a run it
    would be in the way of all others."""
    from testbed.run.execute import analyse
    from testbed.scenario import load_recorded

    return analyse(run, load_recorded(run / "scenario.yaml"), wall_s)


def _stopped(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(folder: str, node: str) -> int:
    """The verdict's exit status; 3 where there is no verdict on a whole run."""
    signal.signal(signal.SIGTERM, _stopped)
    health = Health()
    try:
        run = run_of(Path(folder))
    except NoRunError as error:
        print(error, file=sys.stderr)
        return int(error.status)
    if (run / "verdict.json").exists():
        print(f"{run.name} has ended; docker compose up makes a new run", file=sys.stderr)
        return int(ExitStatus.USAGE)
    try:
        finished = lead(run, node, health)
    except KeyboardInterrupt as error:
        _mark(run, error)
        print("stopped before the run had a verdict", file=sys.stderr)
        return int(ExitStatus.INVALID)
    except TestbedError as error:
        _mark(run, error)
        print(error, file=sys.stderr)
        return int(error.exit_status)
    except Exception as error:
        traceback.print_exc()
        _mark(run, error)
        return int(ExitStatus.INVALID)
    print(f"{finished.verdict.verdict.value}: {finished.verdict.in_words()}")
    print(f"report: ./runs/{run.relative_to(folder)}/report.html", flush=True)
    return int(finished.verdict.exit_status)


def _mark(run: Path, error: BaseException) -> None:
    """A failed analysis has given its verdict already."""
    from testbed.run.mark import mark_unfinished

    if not (run / "verdict.json").is_file():
        mark_unfinished(run, error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
