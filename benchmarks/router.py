"""One routing decision among 10 P, 1 RLD and 16 MD, the paper's cluster.

``python -m benchmarks.router [--runs N] [--decisions N]``

Each value is the mean over ``decisions`` decisions with other requests and hits. Making
the picture is not part of it. The bar is 100 microseconds.
"""

from __future__ import annotations

import argparse
import random
import time

from benchmarks.figures import against_bar, spread
from benchmarks.machine import machine
from testbed.contract.role import Role
from testbed.contract.router import HitThreshold, PrfaasPdd, RouterConfig, WanTime
from testbed_agents.router import (
    ClusterView,
    Decider,
    InstanceView,
    LegView,
    PoolView,
    RequestFacts,
)

BAR_US = 100.0


def picture(draw: random.Random) -> ClusterView:
    """A busy cluster."""

    def several(role: Role, count: int, site: str) -> tuple[InstanceView, ...]:
        return tuple(
            InstanceView(
                f"{role.value}{n}", role, site, draw.randrange(500_000), draw.randrange(64),
                draw.randrange(512), 256,
            )
            for n in range(count)
        )  # fmt: skip

    prefills, decodes = several(Role.PREFILL, 10, "a"), several(Role.DECODE, 16, "b")
    pools = {
        (p.name, m.name): PoolView(f"wan{n % 2}", draw.randrange(5), draw.randrange(3), 4)
        for n, (p, m) in enumerate((p, m) for p in prefills for m in decodes)
    }
    legs = {f"wan{n}": LegView(9_400_000_000, draw.random(), 40, 20_000_000) for n in (0, 1)}
    return ClusterView(0, prefills, several(Role.RELAY, 1, "a"), decodes, pools, legs)


def microseconds(rule: RouterConfig, pictures: list[ClusterView], decisions: int) -> float:
    """Mean time of one decision."""
    decider = Decider(rule)
    requests = [RequestFacts(n, 65_536, 128, 643_968, session=n % 97) for n in range(decisions)]
    started = time.perf_counter_ns()
    for n, request in enumerate(requests):
        decider.decide(request, pictures[n % len(pictures)])
    return (time.perf_counter_ns() - started) / decisions / 1e3


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--decisions", type=int, default=500)
    options = parser.parse_args()
    print(machine())
    draw = random.Random(1)
    pictures = [picture(draw) for _ in range(64)]
    inner = HitThreshold(threshold=0.8)
    for rule in (inner, WanTime(bound_ns=500_000_000), PrfaasPdd(pipeline=inner)):
        config = RouterConfig(pipeline=rule)
        microseconds(config, pictures, options.decisions)  # warm-up, not counted
        took = [microseconds(config, pictures, options.decisions) for _ in range(options.runs)]
        figure = spread(f"decision, {rule.kind}", "us", took)
        print(figure, against_bar(figure, BAR_US, lower_is_better=True), sep="\n")


if __name__ == "__main__":
    main()
