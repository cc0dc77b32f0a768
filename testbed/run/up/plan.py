"""The planner: makes the run folder and everything in it that decides the run.

It is healthy then, which is what all others wait for, and stays: ``--exit-code-from`` ends
everything as soon as any container ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import testbed
from testbed.compose.settle import settled
from testbed.contract.health import Health
from testbed.contract.meeting import Meeting, drain, watched
from testbed.contract.network import Network
from testbed.contract.note import forget_run, name_refusal, name_run
from testbed.contract.plan import Plan
from testbed.contract.progress import FOLDER
from testbed.contract.segment import segments
from testbed.errors import PlanError, TestbedError, UsageError
from testbed.lab.container.stay import end_when_stopped, stay
from testbed.lab.guest.snapshot import code_digest
from testbed.run.folder import make_default_folder, write_inputs, write_json
from testbed.run.prepare import prepare

STARTED = "started.json"
"""When the planner began, below ``lab/`` of the run folder."""
_OPEN_S, _IN_ATTRIB = 60, 0x4
_TOOLS = ("torch", "pyroute2", "pyzmq", "pydantic", "pandas", "numpy")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the environment of ``docker compose up`` may ask for.

    Attributes:
        first: first number of all addresses.
        seed: of the run; None is the scenario's.
        slow: slow motion; None is the scenario's.
    """

    first: int = 10
    seed: int | None = None
    slow: float | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Wish:
        """From TESTBED_NET, TESTBED_SEED and TESTBED_SLOW; empty ones are not there.

        Raises:
            UsageError: one is not what it can be.
        """
        net = environment.get("TESTBED_NET") or "10"
        seed = environment.get("TESTBED_SEED") or None
        slow = environment.get("TESTBED_SLOW") or None
        if not net.isdigit() or not 1 <= int(net) <= 223:
            raise UsageError("plan the run", f"TESTBED_NET={net}", "take a number from 1 to 223")
        if seed is not None and not seed.isdigit():
            raise UsageError("plan the run", f"TESTBED_SEED={seed}", "take a whole number")
        if slow is not None and (not re.fullmatch(r"\d+(\.\d+)?", slow) or float(slow) < 1):
            raise UsageError("plan the run", f"TESTBED_SLOW={slow}", "take a number from 1 on")
        return cls(int(net), None if seed is None else int(seed),
                   None if slow is None else float(slow))  # fmt: skip

    def overrides(self) -> tuple[str, ...]:
        """What of it the scenario itself is told."""
        return () if self.slow is None else (f"real_time.slow={self.slow:g}",)


def plan_run(runs: Path, scenario: str, layout: str, wish: Wish) -> Path:
    """Makes the run folder of a scenario; the containers then find it.

    Args:
        runs: the folder of all runs, as containers see it.
        layout: what the compose file was rendered from, see ``layout_digest``; empty: not asked.

    Raises:
        TestbedError: the scenario or the compose file is wrong, or nothing can be written.
    """
    began = time.time_ns()
    _wait_writable(runs)
    prepared = prepare(
        scenario, wish.overrides(), wish.seed, lab="compose", clock="real", on="host", place=runs
    )
    settled(prepared.plan, str(runs), wish.first)  # refuses before anything is made
    if layout and layout_digest(prepared.plan.network) != layout:
        raise PlanError(
            "plan the run", scenario, "the compose file was rendered from another network",
            "render it anew: testbed compose > compose.yaml",
        )  # fmt: skip
    run = make_default_folder(prepared.plan.scenario, prepared.plan.seed, runs)
    plan = settled(prepared.plan, str(run), wish.first)
    text = prepared.scenario.resolved_yaml()
    write_inputs(run, text, plan, prepared.requests, _provenance(plan, text))
    _open_folders(run, plan)
    write_json(run / Meeting(run).folder.name / STARTED, {"began_ns": began})
    name_run(runs, run)
    for key, value in plan.summary:
        print(f"{key}: {value}")
    print(f"run folder: ./runs/{run.relative_to(runs)}", flush=True)
    return run


def layout_digest(network: Network) -> str:
    """Names the containers and networks of a plan, whatever number its addresses begin with."""
    about = [
        [(node.name, node.kind.value) for node in network.nodes],
        [
            (one.name, one.subnet.partition(".")[2], [seat.node for seat in one.seats])
            for one in segments(network)
        ],
    ]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


def _wait_writable(runs: Path) -> None:
    """Returns when runs can be made; a router opens the folder where it is root's.

    Raises:
        UsageError: they cannot.
    """
    until = time.monotonic() + _OPEN_S
    with watched(runs, _IN_ATTRIB) as news:
        while not os.access(runs, os.W_OK):
            facts = runs.stat()
            if facts.st_uid != 0 or time.monotonic() > until:
                owner = f"{facts.st_uid}:{facts.st_gid}"
                raise UsageError(
                    "make the run folder", "./runs",
                    f"it belongs to {owner}, and containers run as {os.getuid()}:{os.getgid()}",
                    f"let them run as its owner: TESTBED_USER={owner} docker compose up, "
                    "or: chmod 1777 runs",
                )  # fmt: skip
            drain(news, 1.0)


def _open_folders(run: Path, plan: Plan) -> None:
    """Wires are root without any right over the files of others: they need open folders."""
    Meeting(run).open()
    for name in ("events", "logs", FOLDER, "agents"):
        (run / name).mkdir(parents=True, exist_ok=True)
        (run / name).chmod(0o777)
    for agent in plan.agents:
        path = run / "agents" / f"{agent.node}.json"
        path.write_text(agent.model_dump_json(indent=1), encoding="utf-8")


def _provenance(plan: Plan, text: str) -> dict[str, object]:
    """As ``testbed.run.provenance`` has it, for a run on a live kernel."""
    return {
        "testbed": testbed.__version__,
        "code_sha256": code_digest(),
        "command": sys.argv,
        "scenario_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "seed": plan.seed,
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
        "host_kernel": platform.release(),
        "user": "root" if os.geteuid() == 0 else "ordinary",
        "tools": {name: importlib.metadata.version(name) for name in _TOOLS},
    }


def main(folder: str, scenario: str, layout: str = "") -> int:
    """Ends when it is stopped. Where there is no plan the others start as well: they find none,
    and the client ends with the status that stands for the reason."""
    end_when_stopped()
    health = Health()
    runs = Path(folder)
    try:
        with contextlib.suppress(OSError):  # who cannot take it back cannot plan, and says so
            forget_run(runs)
        plan_run(runs, scenario, layout, Wish.of(os.environ))
    except TestbedError as error:
        print(error, file=sys.stderr, flush=True)
        with contextlib.suppress(OSError):  # no note is as good
            name_refusal(runs, int(error.exit_status))
    health.say_ready()
    stay()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
