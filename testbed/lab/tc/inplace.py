"""How one link becomes another without losing what is queued or under way: pure.

The kernel can change a netem where it is; a policer is taken away and put back, which touches no
packet. A netem keeps what a change does not name, and neither a table of delays nor slots can be
named away, so links with these are shaped from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.network import Link
from testbed.lab.tc.path import Way, ways
from testbed.shaping.compile import compile_link
from testbed.shaping.qdisc import Netem, Police, QdiscSpec


@dataclass(frozen=True, slots=True)
class Step:
    """One stage to change: where, and into what."""

    way: Way
    device: str
    spec: Netem | Police


def steps_between(old: Link, new: Link) -> tuple[Step, ...] | None:
    """What has to be changed; None where the link must be shaped from scratch.

    Raises:
        PlanError: ``new`` cannot be.
    """
    steps: list[Step] = []
    for before, way in zip(ways(old), ways(new), strict=True):
        was, now = compile_link(before.spec, way.subject), compile_link(way.spec, way.subject)
        for device, had, has in (
            (way.rate, was.rate, now.rate),
            (way.leaves, was.delay, now.delay),
        ):
            if len(had) != len(has):
                return None
            for one, other in zip(had, has, strict=True):
                if not _fits(one, other):
                    return None
                if one != other and isinstance(other, Netem | Police):
                    steps.append(Step(way, device, other))
    return tuple(steps)


def _fits(was: QdiscSpec, now: QdiscSpec) -> bool:
    if isinstance(was, Netem) and isinstance(now, Netem):
        return not (was.table or now.table or was.slot or now.slot)
    return was == now or (isinstance(was, Police) and isinstance(now, Police))
