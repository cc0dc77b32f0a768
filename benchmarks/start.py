"""From the command to the first packet: wall time of a small lab and of one of 30 nodes.

``python -m benchmarks.start [--runs 5]``

The packet is a ping from the first prefill to the last decode instance through the
shaped network, links read back before it. The guest leaves files; the host's own times
of change of these say when.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.figures import against_bar, spread
from benchmarks.machine import machine
from benchmarks.trial import run_trial, scratch
from testbed.contract.role import NodeKind
from testbed.run.prepare import prepare

SCENARIO = "hello"
LARGE = "topology.parameters={clients: 1, prefill: 10, relay: 0, decode: 17}"
"""28 instances and two routers: 30 nodes, wires not counted."""
SMALL_BAR_S, LARGE_BAR_S = 5.0, 30.0


def measure(root: Path, settings: tuple[str, ...], runs: int, bar_s: float) -> None:
    """Starts one lab ``runs`` times and prints when its program ran, stood and answered."""
    prepared = prepare(SCENARIO, settings)
    network = prepared.plan.network
    nodes = sum(node.kind is not NodeKind.WIRE for node in network.nodes)
    name = f"{nodes} nodes"
    trials = [run_trial(prepared, root / f"{nodes}-{n}", "first_packet.py") for n in range(runs)]
    for what, file in (("network built and read back", "built"), ("first packet", "answered")):
        print(spread(f"{name}: {what}", "s", [trial.seconds_until(file) for trial in trials]))
    print(spread(f"{name}: whole guest", "s", [trial.wall_s for trial in trials]))
    print(spread(f"{name}: CPU", "s", [trial.cpu_s for trial in trials]))
    first = spread(
        f"{name}: first packet", "s", [trial.seconds_until("answered") for trial in trials]
    )
    print(against_bar(first, bar_s, lower_is_better=True), flush=True)


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--large-runs", type=int, default=3)
    options = parser.parse_args()
    print(machine())
    with scratch() as root:
        measure(root, (), options.runs, SMALL_BAR_S)
        measure(root, (LARGE,), options.large_runs, LARGE_BAR_S)


if __name__ == "__main__":
    main()
