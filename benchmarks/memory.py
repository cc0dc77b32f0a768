"""Memory: the orchestrator's peak, and what each further agent with ``nano`` adds.

``python -m benchmarks.memory [--agents-only]``

The orchestrator's peak is VmHWM of the ``testbed run`` process, analysis and report
included. An agent's share is what only it maps (Private_* of smaps_rollup) at the
barrier and after serving; the whole is also taken from MemAvailable of the guest.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figures import against_bar, spread
from benchmarks.machine import machine
from benchmarks.traffic import TENTH
from benchmarks.trial import run_trial, scratch
from testbed.errors import LabError
from testbed.run.prepare import prepare

MIB = 2**20
ORCHESTRATOR_BAR, AGENT_BAR = 300.0, 150.0
MANY = (
    "topology.parameters={clients: 1, prefill: 10, relay: 0, decode: 10}",
    "workload.arrivals={kind: even, every: 50 ms, count: 40}",
)


def peak_bytes(pid: int) -> int:
    """VmHWM of a process; 0 when it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB$", text, re.M)
    return int(found[1]) * 1024 if found else 0


def orchestrator_mib(folder: Path, arguments: tuple[str, ...]) -> float:
    """Peak of one ``testbed run``, polled ten times a second until it ends."""
    run = subprocess.Popen(
        [sys.executable, "-m", "testbed", "run", *arguments, "--out", str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    peak = 0
    while run.poll() is None:
        peak = max(peak, peak_bytes(run.pid))
        time.sleep(0.1)
    _, errors = run.communicate()
    if run.returncode != 0:
        raise LabError("measure the orchestrator", str(folder), errors.decode()[-1000:])
    return peak / MIB


def measure_agents(root: Path) -> None:
    """21 agents that serve 40 requests."""
    trial = run_trial(prepare("hello", MANY), root / "agents", "agent_memory.py")
    found = json.loads((trial.folder / "memory.json").read_text(encoding="utf-8"))
    roles: dict[str, str] = found["roles"]
    for when in ("at_barrier", "after"):
        for role in ("prefill", "decode"):
            sizes = [size / MIB for node, size in found[when].items() if roles[node] == role]
            print(spread(f"private memory of a {role} agent, {when}", "MiB", sizes))
    whole = spread(
        "guest memory per agent, zygote included", "MiB", [found["all_serving"] / MIB / len(roles)]
    )
    worst = spread("largest agent", "MiB", [max(found["after"].values()) / MIB])
    print(whole, against_bar(worst, AGENT_BAR, lower_is_better=True), sep="\n", flush=True)


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents-only", action="store_true")
    parser.add_argument("--measure", type=int, default=30, help="virtual seconds of the pool study")
    options = parser.parse_args()
    print(machine())
    with scratch() as root:
        measure_agents(root)
        if options.agents_only:
            return
        small = spread("orchestrator, hello", "MiB", [orchestrator_mib(root / "a", ("hello",))])
        settings = (*TENTH, "window.warm_up=0 s", f"window.measure={options.measure} s")
        study = ("pool-wide-skewed", *(word for one in settings for word in ("--set", one)))
        large = spread(
            f"orchestrator, pool study of {options.measure} s", "MiB",
            [orchestrator_mib(root / "b", study)],
        )  # fmt: skip
        print(small, large, against_bar(large, ORCHESTRATOR_BAR, lower_is_better=True), sep="\n")


if __name__ == "__main__":
    main()
