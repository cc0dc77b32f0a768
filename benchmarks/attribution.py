"""The search for causes over a made-up record of many requests.

``python -m benchmarks.attribution [--requests 5000] [--runs 5]``

The plan of ``pdd-hello``; every request has its milestones, a transfer over the WAN and 32 tokens,
one in three a stall at its handoff, and links are sampled and lose packets all the while. Wall time
of the search alone; reading the record is told beside it. No lab runs, so no lab kernel is named.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.figures import against_bar, spread
from benchmarks.machine import processor
from testbed.contract.agent import Request
from testbed.contract.event import EventLog, Kind, Value
from testbed.contract.plan import Plan
from testbed.metrics.attribution import attribute
from testbed.metrics.events import read_events
from testbed.metrics.run import read_run
from testbed.run.prepare import prepare
from testbed.workload import write_requests

BAR_S = 5.0
MS = 1_000_000
TOKENS = 32
FAULT = "faults=[{kind: down, link: wan1, at: 2 s, duration: 500 ms, name: cut}]"
Told = tuple[int, str, Kind, int, dict[str, Value]]


class _NoClock:
    def now_ns(self) -> int:
        raise RuntimeError("every event carries its time")


def story(req: int, drawn: random.Random) -> Iterator[Told]:
    """One request: times in nanoseconds, in order but for its tokens."""
    sender, receiver = f"p{1 + req % 2}", f"md{1 + req // 2 % 2}"
    t = req * 20 * MS
    yield t, "c1", Kind.REQUEST_SENT, 1, {"req": req}
    routed: dict[str, Value] = {
        "req": req, "pipeline": "P-RLD-MD", "prefill": sender, "decode": receiver, "relay": "r1",
        "reason": "hit-below-threshold", "prefill_hit": 0, "decode_hit": 0,
    }  # fmt: skip
    yield t + MS, "rt1", Kind.REQUEST_ROUTED, 0, routed
    yield t + 2 * MS, sender, Kind.PREFILL_QUEUED, 0, {"req": req}
    started: dict[str, Value] = {"req": req, "uncached": 1, "context": 0}
    yield t + 5 * MS, sender, Kind.PREFILL_START, 0, started
    yield t + 50 * MS, sender, Kind.PREFILL_END, 0, {"req": req}
    on: dict[str, Value] = {"req": req, "peer": receiver, "conn": req % 4}
    wait, length = drawn.randrange(1, 80) * MS, drawn.randrange(100, 2_000) * MS
    acquired, acked = t + 51 * MS + wait, t + 51 * MS + wait + length
    yield t + 51 * MS, sender, Kind.POOL_QUEUED, 0, on
    yield acquired, sender, Kind.POOL_ACQUIRED, 0, on
    yield acquired, sender, Kind.TRANSFER_START, 4_000_000, {**on, "blocks": 4}
    yield acked, receiver, Kind.KV_VERIFIED, 4_000_000, {"req": req}
    yield acked, sender, Kind.TRANSFER_ACKED, 4_000_000, on
    seen: dict[str, Value] = {**on, "retrans": req % 5, "cwnd": 300, "rtt_us": 25_000}
    yield acked, sender, Kind.TCP_INFO, 0, seen
    yield acked, sender, Kind.POOL_RELEASED, 0, on
    yield acked + MS, receiver, Kind.SEQUENCE_ADMITTED, 0, {"req": req}
    begun: dict[str, Value] = {"req": req, "mode": "catch-up", "heard": 8}
    yield acked + 2 * MS, receiver, Kind.HANDOFF_START, 0, begun
    first = acked + 20 * MS if req % 3 == 0 else t + 240 * MS
    for position in range(8):
        token: dict[str, Value] = {"req": req, "pos": position, "source": "r1"}
        yield t + (80 + 20 * position) * MS, "c1", Kind.TOKEN, 0, token
    yield acked + 10 * MS, receiver, Kind.HANDOFF_END, 0, {"req": req, "position": 8}
    for position in range(8, TOKENS):
        token = {"req": req, "pos": position, "source": receiver}
        yield first + 20 * (position - 8) * MS, "c1", Kind.TOKEN, 0, token


def samples(until: int, drawn: random.Random) -> Iterator[Told]:
    """Both legs, both ways, every 100 ms."""
    for t in range(100 * MS, until, 100 * MS):
        for link in ("wan1", "wan2"):
            for direction in ("forward", "backward"):
                fields: dict[str, Value] = {
                    "link": link, "dir": direction, "packets": 100, "lost": 0,
                    "drops": drawn.randrange(2), "backlog": drawn.randrange(10**6),
                    "interval_ns": 100 * MS,
                }  # fmt: skip
                yield t, "lab", Kind.LINK_SAMPLE, drawn.randrange(1_250_000), fields


def write(folder: Path, plan: Plan, count: int) -> None:
    """A run folder, as far as metrics read it."""
    drawn = random.Random(1)
    told = [event for req in range(count) for event in story(req, drawn)]
    told += samples(max(event[0] for event in told), drawn)
    for fault in plan.faults:
        for span in fault.spans:
            where: dict[str, Value] = {"fault": fault.name, "subject": "wan1"}
            told.append((span.begin_ns, "lab", Kind.FAULT_BEGAN, 0, where))
            told.append((span.end_ns or span.begin_ns, "lab", Kind.FAULT_ENDED, 0, where))
    told.sort(key=lambda event: event[0])
    (folder / "events").mkdir()
    (folder / "plan.json").write_text(plan.model_dump_json())
    requests = tuple(
        Request(
            id=req, at_ns=req * 20 * MS, input_tokens=1_024, hit_tokens=0, output_tokens=TOKENS,
            blocks=8, wire_bytes=4_000_000, prefill="p1", decode="md1",
        )
        for req in range(count)
    )  # fmt: skip
    write_requests(folder / "workload.jsonl", requests)
    for node in sorted({event[1] for event in told}):
        with (folder / "events" / f"{node}.jsonl").open("w", encoding="utf-8") as stream:
            log = EventLog(stream, node, _NoClock())
            for t, at, kind, size, fields in told:
                if at == node:
                    log.emit(kind, size, at_ns=t, **fields)
            log.flush()


def main() -> None:
    """Print the time of the search, its bar, and what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    plan = prepare("pdd-hello", (FAULT,)).plan
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, plan, options.requests)
        began = time.perf_counter()
        run, events = read_run(folder), read_events(folder)
        read_s = time.perf_counter() - began
        inside = np.ones(options.requests, dtype=np.bool_)
        for _ in range(options.runs):
            gc.collect()
            began = time.perf_counter()
            found = attribute(run, events, inside, 0.2)
            taken.append(time.perf_counter() - began)
    print(f"{platform.platform()}, {processor()}, {os.cpu_count()} CPUs")
    print(f"{options.requests} requests, {len(events):,} events, read in {read_s:.2f} s")
    for name, roots in (("stalls", found.causes.stalls), ("transfers", found.causes.transfers)):
        print(f"{name}: {roots.count}, {roots.by_cause}")
    searched = spread("search for causes", "s", taken)
    print(searched, against_bar(searched, BAR_S, lower_is_better=True), sep="\n")


if __name__ == "__main__":
    main()
