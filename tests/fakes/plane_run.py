"""A serving run small enough to follow by hand: five requests of 8 blocks, every pipeline.

::

    r0  P-MD       hit 6   MD streams 0, 1
    r1  P-RLD-MD   hit 2   RLD streams 0, 1; MD takes over at 2 and streams 2, 3
    r2  P-RLD-MD   hit 2   RLD streams 0, 1, 2, which is all
    r3  P-MD       hit 8   nothing to transfer; MD streams 0
    r4  P-RLD      hit 2   RLD streams 0, 1

Caches hold a document of 8 blocks at the start and have room for 20, so r2 evicts 2
blocks at both, and r4 another 6 at P. MD reserves what it lacks, P does not.

Every RLD and MD has room for four sequences in its device memory.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from testbed.checks import Case
from testbed.checks.history import read_history
from testbed.contract.agent import Request
from testbed.contract.event import Kind, Value
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.contract.router import Direct, RouterConfig
from testbed.contract.serving import Caches, DeviceLimits, Serving
from tests.fakes.pool_plan import make_plan
from tests.fakes.run_folder import FakeRun

Event = dict[str, Value]

MS = 1_000_000
BLOCKS = 8
BLOCK_TOKENS = 128
BLOCK_BYTES = BLOCK_TOKENS * 5031
KV_BYTES = 4_560_000 + BLOCKS * BLOCK_BYTES
"""A prompt on a device, with the fixed bytes of the shape."""
TOKEN_BYTES = 5031
BUDGET = 20 * BLOCK_BYTES + 7
AGENTS = (
    ("c1", Role.CLIENT), ("rt1", Role.ROUTER), ("p1", Role.PREFILL), ("p2", Role.PREFILL),
    ("r1", Role.RELAY), ("r2", Role.RELAY), ("md1", Role.DECODE), ("md2", Role.DECODE),
)  # fmt: skip


def plane_requests() -> tuple[Request, ...]:
    """The workload of the run."""
    return tuple(
        Request(
            id=req, at_ns=req * 100 * MS, input_tokens=BLOCKS * BLOCK_TOKENS,
            hit_tokens=hit * BLOCK_TOKENS, output_tokens=4, blocks=BLOCKS - hit,
            wire_bytes=(BLOCKS - hit) * BLOCK_BYTES, prefill="p1", decode="md1",
        )
        for req, hit in enumerate((6, 2, 2, 8, 2))
    )  # fmt: skip


def plane_plan(clock: str = "virtual", budget: int = BUDGET) -> Plan:
    """The plan that the run followed."""
    fake = make_plan(FakeRun(warm_up_s=0, measure_s=1, drain_s=9, pool=4), plane_requests())
    serving = Serving(
        memory=DeviceLimits(relay_bytes=4 * KV_BYTES, decode_bytes=4 * KV_BYTES),
        caches=Caches(prefill_bytes=budget, decode_bytes=budget),
        router=RouterConfig(pipeline=Direct()),
        chunk_tokens=1024, prefill_batch=1, match_timeout_ns=MS, rtt_ns=MS,
        documents=((0, BLOCKS * BLOCK_TOKENS),),
    )  # fmt: skip
    agents = tuple(
        fake.agents[0].model_copy(update={"node": node, "role": role, "serving": serving})
        for node, role in AGENTS
    )
    return fake.model_copy(update={"agents": agents, "clock": clock})


def event(ms: int, node: str, kind: Kind, size: int = 0, **fields: Value) -> Event:
    """One event; numbered when it is written."""
    return {"t": ms * MS, "node": node, "kind": kind.value, "size": size, **fields}


def _route(ms: int, req: int, pipeline: str, decode: str, relay: str) -> list[Event]:
    return [
        event(ms, "c1", Kind.REQUEST_SENT, req=req),
        event(ms, "rt1", Kind.REQUEST_ROUTED, req=req, pipeline=pipeline, prefill="p1",
              decode=decode, relay=relay, reason="test"),
    ]  # fmt: skip


def _matched(ms: int, node: str, req: int, blocks: int, used: int) -> Event:
    return event(
        ms, node, Kind.CACHE_MATCHED, used * BLOCK_BYTES, req=req, blocks=blocks, of=BLOCKS
    )


def _published(ms: int, node: str, req: int, new: int, used: int, evicted: int) -> Event:
    return event(
        ms, node, Kind.CACHE_PUBLISHED, used * BLOCK_BYTES, req=req, blocks=new, evicted=evicted
    )


def _reserved(ms: int, req: int, blocks: int, used: int, evicted: int) -> Event:
    return event(
        ms, "md1", Kind.CACHE_RESERVED, used * BLOCK_BYTES,
        req=req, blocks=blocks, evicted=evicted, reason="",
    )  # fmt: skip


def _prefill(ms: int, req: int, hit: int, before: int, used: int, evicted: int) -> list[Event]:
    return [
        _matched(ms + 1, "p1", req, hit, before),
        event(ms + 2, "p1", Kind.PREFILL_START, req=req),
        _published(ms + 10, "p1", req, BLOCKS - hit, used, evicted),
        event(ms + 10, "p1", Kind.PREFILL_END, req=req),
    ]


def transfer(
    ms: int, req: int, peer: str, blocks: int, acked: int, sender: str = "p1"
) -> list[Event]:
    """Verified at ``acked``, after what the receiver does with the KV at that instant."""
    size = blocks * BLOCK_BYTES
    return [
        event(ms, sender, Kind.TRANSFER_START, size, req=req, peer=peer, conn=0, blocks=blocks),
        event(ms, peer, Kind.KV_BEGIN, size, req=req, peer=sender, conn=0, blocks=blocks),
        event(acked, peer, Kind.KV_VERIFIED, size, req=req, blocks=blocks),
        event(acked + 1, sender, Kind.TRANSFER_ACKED, size, req=req, peer=peer, conn=0,
              duration_ns=(acked + 1 - ms) * MS),
    ]  # fmt: skip


def _decoded(ms: int, node: str, req: int, held: int = 1) -> list[Event]:
    """Admitted beside ``held - 1`` others, and decoded from the next millisecond on."""
    admitted = event(
        ms, node, Kind.SEQUENCE_ADMITTED, held * KV_BYTES, req=req, held=held, waiting=0,
        again=False,
    )  # fmt: skip
    start = event(ms + 1, node, Kind.DECODE_START, req=req, batch=held)
    return [admitted, start] if node.startswith("md") else [admitted]


def _answer(ms: int, req: int, *sources: str) -> list[Event]:
    tokens = [
        event(ms + at, "c1", Kind.TOKEN, req=req, pos=at, token=at, source=source)
        for at, source in enumerate(sources)
    ]
    done = list(range(len(sources)))
    return [*tokens, event(ms + len(sources), "c1", Kind.REQUEST_DONE, req=req, tokens=done)]


def plane_events() -> list[Event]:
    """All events of the sound run. Those of one instant are in the order of this list."""
    r0, r1, r2, r3, r4 = (0, 100, 200, 300, 400)
    return [
        *_route(r0, 0, "P-MD", "md1", ""),
        *_prefill(r0, 0, 6, 8, 10, 0),
        _matched(r0 + 1, "md1", 0, 6, 8),
        _reserved(r0 + 1, 0, 2, 8, 0),
        _published(r0 + 40, "md1", 0, 2, 10, 0),
        *transfer(r0 + 11, 0, "md1", 2, r0 + 40),
        *_decoded(r0 + 41, "md1", 0),
        *_answer(r0 + 50, 0, "md1", "md1"),
        *_route(r1, 1, "P-RLD-MD", "md1", "r1"),
        *_prefill(r1, 1, 2, 10, 16, 0),
        _matched(r1 + 1, "md1", 1, 2, 10),
        _reserved(r1 + 1, 1, 6, 10, 0),
        *transfer(r1 + 11, 1, "r1", BLOCKS, r1 + 12),
        event(r1 + 40, "md1", Kind.HANDOFF_START, req=1, mode="catch-up", heard=1),
        _published(r1 + 40, "md1", 1, 6, 16, 0),
        *transfer(r1 + 11, 1, "md1", 6, r1 + 40),
        *_decoded(r1 + 13, "r1", 1),
        *_decoded(r1 + 40, "md1", 1, held=2),
        event(r1 + 51, "r1", Kind.RELAY_END, 26, req=1, tokens=2, ids=2, cause="takeover"),
        event(r1 + 52, "md1", Kind.HANDOFF_END, req=1, position=2, computed=2),
        *_answer(r1 + 50, 1, "r1", "r1", "md1", "md1"),
        *_route(r2, 2, "P-RLD-MD", "md1", "r1"),
        *_prefill(r2, 2, 2, 16, 20, 2),
        _matched(r2 + 1, "md1", 2, 2, 16),
        _reserved(r2 + 1, 2, 6, 14, 2),
        *transfer(r2 + 11, 2, "r1", BLOCKS, r2 + 12),
        event(r2 + 40, "md1", Kind.HANDOFF_START, req=2, mode="catch-up", heard=3),
        _published(r2 + 40, "md1", 2, 6, 20, 2),
        *transfer(r2 + 11, 2, "md1", 6, r2 + 40),
        *_decoded(r2 + 13, "r1", 2),
        event(r2 + 23, "r1", Kind.RELAY_END, 39, req=2, tokens=3, ids=3, cause="last"),
        *_answer(r2 + 20, 2, "r1", "r1", "r1"),
        *_route(r3, 3, "P-MD", "md1", ""),
        *_prefill(r3, 3, 8, 20, 20, 2),
        _matched(r3 + 1, "md1", 3, 8, 20),
        _published(r3 + 1, "md1", 3, 0, 20, 2),
        *_decoded(r3 + 1, "md1", 3),
        *_answer(r3 + 20, 3, "md1"),
        *_route(r4, 4, "P-RLD", "", "r1"),
        *_prefill(r4, 4, 2, 20, 20, 8),
        *transfer(r4 + 11, 4, "r1", BLOCKS, r4 + 12),
        *_decoded(r4 + 13, "r1", 4),
        event(r4 + 22, "r1", Kind.RELAY_END, req=4, tokens=2, ids=0, cause="last"),
        *_answer(r4 + 20, 4, "r1", "r1"),
        *[
            event(
                900, node, Kind.CACHE_CLOSED, 20 * BLOCK_BYTES, blocks=20, locks=0, reservations=0
            )
            for node in ("md1", "p1")
        ],
    ]


def plane_case(folder: Path, events: list[Event], plan: Plan | None = None) -> Case:
    """Write the events as a run would, in order of time, and read them back."""
    numbers: Counter[str] = Counter()
    lines: dict[str, list[str]] = {}
    for one in sorted(events, key=lambda one: int(str(one["t"]))):
        node = str(one["node"])
        lines.setdefault(node, []).append(json.dumps({**one, "seq": numbers[node]}))
        numbers[node] += 1
    for node, texts in lines.items():
        (folder / f"{node}.jsonl").write_text("\n".join(texts) + "\n")
    requests = {request.id: request for request in plane_requests()}
    return Case(plan or plane_plan(), requests, read_history(folder))
