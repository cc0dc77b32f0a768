"""One transfer of 1 GiB over the 400 Gbit/s link, in virtual time.

``python -m benchmarks.rdma [--verify all]``

n is 1: virtual times repeat to the nanosecond. The peer is the line itself: size / rate.
"""

from __future__ import annotations

import argparse

from benchmarks.figures import against, against_bar, spread
from benchmarks.machine import machine
from benchmarks.trial import run_trial, scratch
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.errors import AnalysisError
from testbed.run.execute import analyse
from testbed.run.prepare import prepare

SCENARIO = "rdma-1gib"


def slowest_bps(plan: Plan) -> int:
    """Rate of the slowest link between the instances."""
    nodes = {agent.node for agent in plan.agents if agent.role is not Role.CLIENT}
    return min(
        link.forward.rate_bps for link in plan.network.links if {link.a.node, link.b.node} & nodes
    )


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verify", choices=("substance", "all"), default="substance")
    options = parser.parse_args()
    prepared = prepare(SCENARIO, (f"verify={options.verify}",))
    print(machine())
    with scratch() as root:
        trial = run_trial(prepared, root / "run")
        metrics = analyse(trial.folder, prepared.scenario).metrics
    transfer = metrics["transfer"]
    took = transfer["p50_s"] if isinstance(transfer, dict) else None
    if not isinstance(took, float):
        raise AnalysisError("measure the transfer", SCENARIO, "it was not acknowledged")
    ideal_s = prepared.requests[0].wire_bytes * 8 / slowest_bps(prepared.plan)
    ours = spread("transfer of 1 GiB", "virtual ms", [took * 1e3])
    ideal = spread("size / rate", "virtual ms", [ideal_s * 1e3])
    print(ours, against(ours, ideal), sep="\n")
    print(against_bar(ours, 1.15 * ideal_s * 1e3 + 0.5, lower_is_better=True))
    print(f"guest: wall {trial.wall_s:.1f} s, CPU {trial.cpu_s:.1f} s")


if __name__ == "__main__":
    main()
