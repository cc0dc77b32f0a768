"""A run folder without a lab: ideal equal sharing of the WAN, written as real events.

``write_run_folder`` simulates a FIFO pool of N transfers over a processor-sharing link
and writes every file that a run leaves behind, so that checks, metrics and reports can
be tested in milliseconds. It is a fake for tests: no TCP, no queues in routers.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np

from testbed.contract.agent import Request
from testbed.contract.event import EventLog, Kind
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from tests.fakes.fake_run import (
    BLOCK,
    INPUT_TOKENS,
    LEG_PAYLOAD_BPS,
    RTT_NS,
    SAMPLE_NS,
    SECOND,
    FakeRun,
)
from tests.fakes.pool_plan import make_plan

__all__ = ["FakeRun", "Transfer", "draw", "make_plan", "share", "token_of", "write_run_folder"]


class _Clock:
    """A clock that is never asked: every event is written with its own time."""

    def now_ns(self) -> int:
        raise RuntimeError("the fake writes explicit times only")


@dataclass(slots=True)
class Transfer:
    """One simulated transfer; times in nanoseconds."""

    request: Request
    queued: int
    acquired: int = 0
    acked: int = 0
    conn: int = 0
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)


def draw(run: FakeRun) -> tuple[Request, ...]:
    """Draw Poisson arrivals and hit rates, rescaled to the wanted offered load."""
    generator = np.random.default_rng(run.seed)
    until = run.warm_up_s + run.measure_s
    count = int(run.rate * until)
    times = np.sort(generator.uniform(0, until, count))
    if run.wide:
        hits = 0.02 + 0.97 * generator.beta(0.788, 0.081, count)
    else:
        hits = generator.uniform(0.85, 0.95, count)
    hit_tokens = (hits * INPUT_TOKENS // BLOCK * BLOCK).astype(int)
    raw = 4_560_000 + 5031.0 * (INPUT_TOKENS - hit_tokens)
    inside = times >= run.warm_up_s
    wanted = run.load * run.measure_s * 2 * LEG_PAYLOAD_BPS / 8
    sizes = raw * (wanted / raw[inside].sum())
    return tuple(
        Request(
            id=i,
            at_ns=int(times[i] * SECOND),
            input_tokens=INPUT_TOKENS,
            hit_tokens=int(hit_tokens[i]),
            output_tokens=run.output_tokens,
            blocks=(INPUT_TOKENS - int(hit_tokens[i])) // BLOCK,
            wire_bytes=int(sizes[i]),
            prefill="p1",
            decode="md1",
        )
        for i in range(count)
    )


def share(requests: tuple[Request, ...], pool: int) -> list[Transfer]:
    """Simulate: at most ``pool`` transfers share the two legs equally, the rest wait FIFO."""
    capacity = 2 * LEG_PAYLOAD_BPS / 8 / SECOND  # bytes per nanosecond
    done: list[Transfer] = []
    waiting: deque[Transfer] = deque()
    active: list[tuple[float, int, Transfer]] = []
    free = list(range(pool))
    arrivals = deque(Transfer(r, r.at_ns + 1_000_000) for r in requests)
    attained, now = 0.0, 0

    def start(transfer: Transfer) -> None:
        transfer.acquired, transfer.conn = now, heapq.heappop(free)
        transfer.counts["acquired"] = (len(active) + 1, len(waiting))
        goal = attained + transfer.request.wire_bytes
        heapq.heappush(active, (goal, transfer.request.id, transfer))

    while arrivals or active:
        finish = now + (active[0][0] - attained) * len(active) / capacity if active else None
        if arrivals and (finish is None or arrivals[0].queued <= finish):
            transfer = arrivals.popleft()
            if active:
                attained += (transfer.queued - now) * capacity / len(active)
            now = transfer.queued
            transfer.counts["queued"] = (len(active), len(waiting) + 1)
            waiting.append(transfer)
        elif finish is not None:
            attained, _, transfer = heapq.heappop(active)
            now = max(now, round(finish))
            transfer.acked = now
            transfer.counts["released"] = (len(active), len(waiting))
            heapq.heappush(free, transfer.conn)
            done.append(transfer)
        while waiting and free:
            start(waiting.popleft())
    return done


def token_of(req: int, position: int) -> int:
    """The token that every fake engine produces."""
    return (req * 7919 + position * 104_729) % 512


def write_run_folder(folder: Path, run: FakeRun) -> Path:
    """Write a complete run folder, but for metrics.json, verdict.json and report.html."""
    requests = draw(run)
    transfers = share(requests, run.pool)
    plan = make_plan(run, requests)
    (folder / "events").mkdir(parents=True)
    (folder / "logs").mkdir()
    (folder / "plan.json").write_text(plan.model_dump_json(indent=1))
    (folder / "scenario.yaml").write_text(f"name: {run.scenario}\nseed: {run.seed}\n")
    (folder / "workload.jsonl").write_text(
        "".join(request.model_dump_json() + "\n" for request in requests)
    )
    (folder / "provenance.json").write_text(
        json.dumps({"commit": "0" * 40, "dirty": False, "kernel": "fake", "seed": run.seed})
    )
    (folder / "fidelity.json").write_text(json.dumps({"links": _fidelity()}))
    _write_events(folder / "events", run, plan, transfers)
    with (folder / "reference.jsonl").open("w") as stream:
        for request in requests:
            tokens = [token_of(request.id, i) for i in range(request.output_tokens)]
            line = {"req": request.id, "tokens": tokens, "gaps": [1.0] * len(tokens)}
            stream.write(json.dumps(line) + "\n")
    with (folder / "oracle.jsonl").open("w") as stream:
        for transfer in sorted(share(requests, run.pool), key=lambda t: t.request.id):
            wait, took = transfer.acquired - transfer.queued, transfer.acked - transfer.acquired
            line = {
                "req": transfer.request.id,
                "at_s": transfer.queued / SECOND,
                "bytes": transfer.request.wire_bytes,
                "wait_s": wait / SECOND,
                "duration_s": took * 0.9 / SECOND,
            }
            stream.write(json.dumps(line) + "\n")
    return folder


def _fidelity() -> list[dict[str, object]]:
    return [
        {
            "link": f"wan{leg}",
            "direction": direction,
            "field": name,
            "requested": value,
            "compiled": value,
            "applied": value,
            "measured": value * 1.0001,
            "tolerance": "0.5 %",
            "ok": True,
        }
        for leg in (1, 2)
        for direction in ("forward", "backward")
        for name, value in (("rate_bps", 10_000_000_000), ("delay_ns", 10_000_000))
    ]


def _write_events(folder: Path, run: FakeRun, plan: Plan, transfers: list[Transfer]) -> None:
    timeline: list[tuple[int, int, str, Callable[[EventLog, int], int]]] = []

    def at(t: int, node: str, emit: Callable[[EventLog, int], int]) -> None:
        timeline.append((t, len(timeline), node, emit))

    for agent in plan.agents:
        at(-SECOND, agent.node, _ready(agent.role))
        at(0, agent.node, lambda log, t: log.emit(Kind.BARRIER, at_ns=t))
    for transfer in transfers:
        _tell(at, run, transfer)
    end = plan.agents[0].window.deadline_ns
    at(-SECOND, "lab", lambda log, t: log.emit(Kind.AGENT_READY, at_ns=t, role="lab"))
    last = end
    for (link, direction), samples in _samples(plan, transfers).items():
        for t, size in samples:
            at(t, "lab", _sample(link, direction, size))
            last = max(last, t)
    at(last, "lab", lambda log, t: log.emit(Kind.AGENT_STOP, at_ns=t, status=0))
    for agent in plan.agents:
        stop = end if agent.role is Role.CLIENT else last
        at(stop, agent.node, lambda log, t: log.emit(Kind.AGENT_STOP, at_ns=t, status=0))
    timeline.sort(key=lambda entry: (entry[0], entry[1]))
    streams: dict[str, TextIO] = {}
    logs: dict[str, EventLog] = {}
    for t, _, node, emit in timeline:
        if node not in logs:
            streams[node] = (folder / f"{node}.jsonl").open("w")
            logs[node] = EventLog(streams[node], node, _Clock())
        emit(logs[node], t)
    for node, log in logs.items():
        log.flush()
        streams[node].close()


def _ready(role: Role) -> Callable[[EventLog, int], int]:
    return lambda log, t: log.emit(Kind.AGENT_READY, at_ns=t, role=role.value)


def _tell(at: Callable[..., None], run: FakeRun, transfer: Transfer) -> None:
    r = transfer.request
    peer, size, conn = "md1", r.wire_bytes, transfer.conn
    queued, acquired, released = (
        transfer.counts[name] for name in ("queued", "acquired", "released")
    )
    wait, took = transfer.acquired - transfer.queued, transfer.acked - transfer.acquired

    def event(
        t: int, node: str, kind: Kind, size: int = 0, **fields: int | str | list[int]
    ) -> None:
        at(t, node, lambda log, when: log.emit(kind, size, at_ns=when, req=r.id, **fields))

    event(
        r.at_ns,
        "c1",
        Kind.REQUEST_SENT,
        size,
        input_tokens=r.input_tokens,
        hit_tokens=r.hit_tokens,
        output_tokens=r.output_tokens,
    )
    event(r.at_ns, "p1", Kind.PREFILL_QUEUED)
    uncached = r.input_tokens - r.hit_tokens
    event(
        r.at_ns,
        "p1",
        Kind.PREFILL_START,
        uncached=uncached,
        context=r.hit_tokens,
        real_tokens=uncached // 128,
    )
    event(r.at_ns + 1_000_000, "p1", Kind.PREFILL_END)
    busy, waiting = queued
    event(transfer.queued, "p1", Kind.POOL_QUEUED, peer=peer, busy=busy, waiting=waiting)
    busy, waiting = acquired
    event(
        transfer.acquired,
        "p1",
        Kind.POOL_ACQUIRED,
        peer=peer,
        conn=conn,
        wait_ns=wait,
        busy=busy,
        waiting=waiting,
    )
    event(transfer.acquired, "p1", Kind.TRANSFER_START, size, peer=peer, conn=conn, blocks=r.blocks)
    event(transfer.acquired, "md1", Kind.KV_BEGIN, size, peer="p1", conn=conn, blocks=r.blocks)
    event(transfer.acked, "md1", Kind.KV_VERIFIED, size, blocks=r.blocks)
    event(transfer.acked, "p1", Kind.TRANSFER_ACKED, size, peer=peer, conn=conn, duration_ns=took)
    event(
        transfer.acked,
        "p1",
        Kind.TCP_INFO,
        peer=peer,
        conn=conn,
        rtt_us=20_000,
        rttvar_us=10,
        cwnd=100,
        retrans=0,
        lost=0,
        delivery_bps=0,
        min_rtt_us=20_000,
    )
    busy, waiting = released
    event(
        transfer.acked, "p1", Kind.POOL_RELEASED, peer=peer, conn=conn, busy=busy, waiting=waiting
    )
    event(transfer.acked, "md1", Kind.DECODE_START, batch=1)
    tokens = [token_of(r.id, i) for i in range(r.output_tokens)]
    t = transfer.acked + RTT_NS
    if r.id in run.fail:
        event(t, "c1", Kind.REQUEST_FAILED, reason="transfer-timeout")
        return
    for position, token in enumerate(tokens):
        event(t, "c1", Kind.TOKEN, pos=position, token=token, source="md1")
        t += 20_000_000
    event(t, "md1", Kind.DECODE_END, tokens=len(tokens))
    event(t, "c1", Kind.REQUEST_DONE, tokens=tokens)


def _sample(link: str, direction: str, size: int) -> Callable[[EventLog, int], int]:
    return lambda log, t: log.emit(
        Kind.LINK_SAMPLE,
        size,
        at_ns=t,
        link=link,
        dir=direction,
        packets=size // 8948,
        drops=0,
        backlog=min(size // 40, 20_000_000),
        interval_ns=SAMPLE_NS,
    )


def _samples(plan: Plan, transfers: list[Transfer]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Bytes per interval, link and direction: each transfer spread evenly over its duration."""
    end = max((t.acked for t in transfers), default=SAMPLE_NS)
    bins = np.zeros((2, end // SAMPLE_NS + 1))
    for transfer in transfers:
        first, last = transfer.acquired // SAMPLE_NS, transfer.acked // SAMPLE_NS
        leg = hashlib.sha256(str(transfer.conn).encode()).digest()[0] % 2
        bins[leg, first : last + 1] += transfer.request.wire_bytes / (last - first + 1)
    seen = {
        ("wan1", "forward"): bins[0],
        ("wan2", "forward"): bins[1],
        ("fab-p1", "forward"): bins[0] + bins[1],
        ("fab-md1", "backward"): bins[0] + bins[1],
    }
    return {
        way: [((i + 1) * SAMPLE_NS, math.ceil(b)) for i, b in enumerate(sizes)]
        for way, sizes in seen.items()
    }
