"""What random faults may act on: the links, nodes and agents of one plan, and until when. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from testbed.contract.agent import Request
from testbed.contract.link import Distribution, FourState, GilbertElliott, LinkSpec
from testbed.contract.network import Link, Node
from testbed.contract.plan import Plan
from testbed.contract.pool import Pool
from testbed.contract.role import NodeKind, Role
from testbed.errors import UsageError
from testbed.plan.ailments import pairs
from testbed.scenario.value import Scenario
from testbed.shaping.distribution import SCALE, table_of
from testbed.shaping.qdisc import U32_MAX
from testbed.shaping.ratespec import TICK_NS
from testbed.shaping.refusal import SLOWEST_BPS

LONGEST_ADDED_NS = 60_000_000
"""Of one fault of kind delay. A rate of 400 Gbit/s holds 0.9 s of frames, so many may meet."""
_ROUNDING = 1.01


@dataclass(frozen=True, slots=True)
class Ground:
    """Where and when faults may be.

    Attributes:
        pairs: each sender of KV with each of its receivers, ``p1 md1``.
        pool: of every pair.
        sure_ns: a fault that begins by then comes for sure, for requests are still to be asked.
        last_ns: nothing may begin later: the run is over, and the plan would be refused.
    """

    links: tuple[Link, ...]
    nodes: tuple[Node, ...]
    pairs: tuple[str, ...]
    pool: Pool
    sure_ns: int
    last_ns: int

    def node(self, name: str) -> Node:
        """A node by name. Raises KeyError."""
        return {node.name: node for node in self.nodes}[name]

    def members(self, name: str) -> tuple[str, ...]:
        """The links that a link's or a class's name stands for."""
        return tuple(link.name for link in self.links if name in (link.name, link.kind))

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes of links, each once."""
        return tuple(dict.fromkeys(link.kind for link in self.links))

    def ways(self, name: str) -> tuple[LinkSpec, ...]:
        """Both directions of every link that a name stands for."""
        found = [link for link in self.links if name in (link.name, link.kind)]
        return tuple(way for link in found for way in (link.forward, link.backward))

    def agents(self, *but: Role) -> tuple[str, ...]:
        """Names of the agents, without those of some roles."""
        return tuple(
            node.name for node in self.nodes if node.kind is NodeKind.AGENT and node.role not in but
        )

    def receivers(self) -> tuple[str, ...]:
        """Names of the agents that receive KV."""
        return self.agents(Role.CLIENT, Role.ROUTER, Role.PREFILL)


def ground_of(scenario: Scenario, plan: Plan, requests: Sequence[Request]) -> Ground:
    """The ground of a scenario and its plan.

    Raises:
        UsageError: the plan has faults already, no virtual clock, or lives in containers.
    """
    attempt, remedy = "soak", "name a scenario that the virtual clock and namespaces can run"
    if plan.clock != "virtual" or plan.lab != "mininet":
        raise UsageError(
            attempt, plan.scenario,
            f"it runs in lab {plan.lab} under the {plan.clock} clock, where a run does not replay",
            remedy,
        )  # fmt: skip
    if plan.faults:
        raise UsageError(
            attempt, plan.scenario, "it has faults of its own",
            "name the scenario without them; faults are drawn",
        )  # fmt: skip
    window = plan.agents[0].window
    return Ground(
        links=plan.network.links,
        nodes=plan.network.nodes,
        pairs=tuple(" ".join(pair) for pair in pairs(scenario, plan.network)),
        pool=scenario.pool,
        sure_ns=max(request.at_ns for request in requests),
        last_ns=window.end_ns + window.drain_ns - 1,
    )


def carries_frames(spec: LinkSpec) -> bool:
    """Whether what acts per frame can act: no superframe carries several."""
    return spec.superframe_bytes <= spec.mtu


def slowest_bps(spec: LinkSpec) -> int:
    """The lowest rate (bit/s, in steps of 8) at which the policer can hold the buffer's time."""
    least = max(SLOWEST_BPS, spec.buffer_bytes * 8 * 1e9 / (U32_MAX * TICK_NS))
    return int(least * _ROUNDING) // 8 * 8 + 8


def widest_jitter_ns(spec: LinkSpec, distribution: Distribution) -> int:
    """The largest spread that takes no frame back before it was sent; 0 where there is none."""
    if spec.jitter is not None or spec.slot is not None:
        return 0
    return int(spec.delay_ns / max(1.0, _lowest(distribution)) / _ROUNDING)


@cache
def _lowest(distribution: Distribution) -> float:
    """How many spreads below the mean it reaches."""
    return -min(table_of(distribution), default=-SCALE) / SCALE


def bursts(spec: LinkSpec) -> bool:
    """Whether the link itself loses in bursts, beside which no other burst can be."""
    return isinstance(spec.loss, GilbertElliott | FourState)
