"""A serving run small enough to work out all its figures by hand.

A window from 1 s to 3 s; prompts of 8 blocks; ``r1`` is the RLD::

    req 0 (warm-up)  P-RLD-MD, all at MD already; RLD holds it from 1.300 to 1.500
    req 1            P-RLD-MD: P finds 2 blocks, MD 3; RLD holds it from 1.402 to 2.105,
                     30 tokens of RLD every 20 ms from 1.420, 30 of MD from 2.110
    req 2            P-MD: P finds 6 blocks, MD all 8, so that nothing is sent
    req 3            fails before a router saw it
"""

from __future__ import annotations

from pathlib import Path

from testbed.contract.agent import Request
from testbed.contract.event import Kind, Value
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.contract.router import HitThreshold, RouterConfig
from testbed.contract.serving import Caches, Serving
from tests.fakes.hand_run import ARRIVALS_MS, MS, Told, link, plan_of, told, write_story

BLOCK_BYTES = 128 * 5_031
FIXED_BYTES = 4_560_000
SIZE = 5 * BLOCK_BYTES + FIXED_BYTES
"""What request 1 lacks at MD: 8 - 3 blocks."""


def routed(ms: float, req: int, relay: str, reason: str, p_hit: int, md_hit: int) -> Told:
    pipeline = "P-RLD-MD" if relay else "P-MD"
    return told(
        ms, "rt1", Kind.REQUEST_ROUTED, req=req, pipeline=pipeline, prefill="p1", decode="md1",
        relay=relay, reason=reason, prefill_hit=p_hit, decode_hit=md_hit,
    )  # fmt: skip


def matched(ms: float, node: str, req: int, blocks: int) -> Told:
    return told(ms, node, Kind.CACHE_MATCHED, req=req, blocks=blocks, of=8)


def prefilled(req: int, queued: float, start: float, end: float) -> list[Told]:
    return [
        told(queued, "p1", Kind.PREFILL_QUEUED, req=req),
        told(start, "p1", Kind.PREFILL_START, req=req, uncached=128, context=896),
        told(end, "p1", Kind.PREFILL_END, req=req),
    ]


def sent(
    req: int, peer: str, size: int, queued: float, acquired: float, acked: float
) -> list[Told]:
    """One transfer of 5 blocks over a pool of its own, from queued to released."""
    on: dict[str, Value] = {"req": req, "peer": peer, "conn": 0}
    wait_ns, duration_ns = int((acquired - queued) * MS), int((acked - acquired) * MS)
    waits: dict[str, Value] = {"req": req, "peer": peer, "busy": 0, "waiting": 1}
    busy: dict[str, Value] = {**on, "busy": 1, "waiting": 0}
    free: dict[str, Value] = {**on, "busy": 0, "waiting": 0}
    return [
        Told(queued, "p1", Kind.POOL_QUEUED, 0, waits),
        Told(acquired, "p1", Kind.POOL_ACQUIRED, 0, {**busy, "wait_ns": wait_ns}),
        Told(acquired, "p1", Kind.TRANSFER_START, size, {**on, "blocks": 5}),
        Told(acked, peer, Kind.KV_VERIFIED, size, {"req": req, "blocks": 5}),
        Told(acked, "p1", Kind.TRANSFER_ACKED, size, {**on, "duration_ns": duration_ns}),
        Told(acked, "p1", Kind.POOL_RELEASED, 0, free),
    ]


def streamed(req: int, source: str, begin: int, *times_ms: float) -> list[Told]:
    """Tokens from position ``begin`` on; each has its position for a value."""
    return [
        told(ms, "c1", Kind.TOKEN, req=req, pos=begin + i, token=begin + i, source=source)
        for i, ms in enumerate(times_ms)
    ]


def answered(req: int, begin: int, *times_ms: float) -> list[Told]:
    """The last tokens of an answer, from MD, and its end."""
    tokens = list(range(begin + len(times_ms)))
    end = told(times_ms[-1], "c1", Kind.REQUEST_DONE, req=req, tokens=tokens)
    return [*streamed(req, "md1", begin, *times_ms), end]


def serving_story() -> list[Told]:
    events = [told(ms, "c1", Kind.REQUEST_SENT, 1_000, req=i) for i, ms in enumerate(ARRIVALS_MS)]
    events += [routed(401, 0, "r1", "hit-below-threshold", 0, 0)]
    events += [matched(402, "p1", 0, 0), matched(402, "md1", 0, 8)]
    events += sent(0, "r1", 999, 1_200, 1_200, 1_300)
    events += [told(1_500, "r1", Kind.RELAY_END, req=0, tokens=1, ids=1, cause="last")]
    events += [routed(1_100, 1, "r1", "hit-below-threshold", 2, 4)]
    events += [matched(1_101, "p1", 1, 2), matched(1_101, "md1", 1, 3)]
    events += prefilled(1, 1_101, 1_201, 1_401)
    events += sent(1, "r1", 999, 1_401, 1_401, 1_402)
    events += sent(1, "md1", SIZE, 1_401, 1_501, 2_001)
    events += streamed(1, "r1", 0, *(1_420 + 20 * i for i in range(30)))
    events += [
        told(2_000, "md1", Kind.HANDOFF_START, req=1, mode="catch-up", heard=29),
        told(2_100, "md1", Kind.HANDOFF_END, req=1, position=30, computed=30),
        told(2_105, "r1", Kind.RELAY_END, req=1, tokens=32, ids=32, cause="taken-over"),
    ]
    events += answered(1, 30, *(2_110 + 20 * i for i in range(30)))
    events += [routed(1_500, 2, "", "hit-at-threshold", 8, 8)]
    events += [matched(1_501, "p1", 2, 6), matched(1_501, "md1", 2, 8)]
    events += prefilled(2, 1_501, 1_801, 1_901)
    events += answered(2, 0, 2_500, 2_510, 2_520)
    events += [told(2_100, "c1", Kind.REQUEST_FAILED, req=3, reason="not-routed")]
    return events


def serving_plan(requests: tuple[Request, ...], decode_site: str = "b") -> Plan:
    plan = plan_of(requests)
    serving = Serving(
        caches=Caches(prefill_bytes=1 << 30, decode_bytes=1 << 30),
        router=RouterConfig(pipeline=HitThreshold(threshold=0.5)),
        chunk_tokens=1_024,
        prefill_batch=1,
        match_timeout_ns=MS,
        rtt_ns=20 * MS,
        site_of=(("p1", "a"), ("r1", "a"), ("md1", decode_site)),
    )
    agents = [agent.model_copy(update={"serving": serving}) for agent in plan.agents]
    relay = agents[-1].model_copy(update={"node": "r1", "role": Role.RELAY})
    links = (*plan.network.links, link("acc-r1", "fabric", "r1", "tor-a", 2_000))
    network = plan.network.model_copy(update={"links": links})
    return plan.model_copy(update={"agents": (*agents, relay), "network": network})


def write_serving_run(folder: Path, events: list[Told], decode_site: str = "b") -> Path:
    """Write plan, workload and events. The workload's sizes are wrong on purpose: MD's cache
    decides what is sent."""
    requests = tuple(
        Request(
            id=i, at_ns=ms * MS, input_tokens=1_024, hit_tokens=768, output_tokens=60, blocks=2,
            wire_bytes=1_000, prefill="p1", decode="md1",
        )
        for i, ms in enumerate(ARRIVALS_MS)
    )  # fmt: skip
    return write_story(folder, serving_plan(requests, decode_site), requests, events)
