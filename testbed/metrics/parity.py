"""Hits of every prefix cache, and whether P's and MD's are alike.

Where MD finds less than P, blocks that nobody computed again must cross the WAN; where
it finds more, blocks are computed that nobody needs to send.
"""

from __future__ import annotations

from testbed.contract.role import Role
from testbed.metrics.routing import Matches
from testbed.metrics.run import Run
from testbed.metrics.serving_record import InstanceHits, Parity


def instance_hits(run: Run, found: Matches) -> dict[str, InstanceHits]:
    """One entry for each P and MD of the plan, asked or not, and for each RLD with a cache."""
    hits: dict[str, InstanceHits] = {}
    serving = run.plan.agents[0].serving
    cached = serving is not None and serving.caches.relay_bytes > 0
    for role in (Role.PREFILL, Role.RELAY, Role.DECODE) if cached else (Role.PREFILL, Role.DECODE):
        for agent in run.agents(role):
            own = [match for (_, name), match in found.items() if name == agent.node]
            asked, matched = sum(of for _, of in own), sum(blocks for blocks, _ in own)
            hits[agent.node] = InstanceHits(
                role=role.value,
                requests=len(own),
                asked_blocks=asked,
                matched_blocks=matched,
                hit=matched / asked if asked else None,
            )
    return hits


def parity(hits: dict[str, InstanceHits], found: Matches) -> Parity:
    """How far P's and MD's hits lie apart, over all and request by request."""
    p_hit, md_hit = _hit(hits, Role.PREFILL), _hit(hits, Role.DECODE)
    at_p = {req: blocks for (req, name), (blocks, _) in found.items() if _is(hits, name, "prefill")}
    at_md = {req: blocks for (req, name), (blocks, _) in found.items() if _is(hits, name, "decode")}
    both = at_p.keys() & at_md.keys()
    unequal = sum(at_p[req] != at_md[req] for req in both)
    return Parity(
        p_hit=p_hit,
        md_hit=md_hit,
        rld_hit=_hit(hits, Role.RELAY),
        gap=None if p_hit is None or md_hit is None else abs(p_hit - md_hit),
        unequal_fraction=unequal / len(both) if both else None,
    )


def _is(hits: dict[str, InstanceHits], name: str, role: str) -> bool:
    return name in hits and hits[name].role == role


def _hit(hits: dict[str, InstanceHits], role: Role) -> float | None:
    own = [one for one in hits.values() if one.role == role.value]
    asked = sum(one.asked_blocks for one in own)
    return sum(one.matched_blocks for one in own) / asked if asked else None
