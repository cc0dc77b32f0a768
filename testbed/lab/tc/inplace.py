"""How one link becomes another without losing what is queued or under way: pure.

The kernel can change a netem where it is; a policer or a program is taken away and put back, which
touches no packet. Sieves come and go one by one. A netem keeps what a change does not name, and
neither a table of delays nor slots can be named away, so links with these are shaped from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.network import Link
from testbed.lab.tc.path import Way, ways
from testbed.shaping.compile import compile_link
from testbed.shaping.qdisc import Gate, Netem, PacketFilter, Police, QdiscSpec


@dataclass(frozen=True, slots=True)
class Step:
    """One stage to change: where, and into what; or a sieve to take away or to put there."""

    way: Way
    device: str
    spec: Netem | Police | Gate | PacketFilter
    away: bool = False


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
                if one != other and isinstance(other, Netem | Police | Gate):
                    steps.append(Step(way, device, other))
        steps.extend(
            Step(way, way.leaves, one, True) for one in was.sieves if one not in now.sieves
        )
        steps.extend(Step(way, way.leaves, one) for one in now.sieves if one not in was.sieves)
    return tuple(steps)


def _fits(was: QdiscSpec, now: QdiscSpec) -> bool:
    if isinstance(was, Netem) and isinstance(now, Netem):
        return not (was.table or now.table or was.slot or now.slot)
    return was == now or any(
        isinstance(was, kind) and isinstance(now, kind) for kind in (Police, Gate)
    )
