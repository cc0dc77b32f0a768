"""A run small enough to work out all its figures by hand.

One pair with a pool of 1, a window from 1 s to 3 s, four requests of 1,000 bytes::

    s        0.5   1.0        2.0        3.0
    r0 (warm-up)  |█████|               |            acquired 0.5, acknowledged 1.5
    r1            |  ░░░███|            |            queued 1.2, acquired 1.5, acked 1.9
    r2            |      ░░░███████     |            queued 1.6, acquired 1.9, acked 2.8
    r3            |              ×      |            failed, never transferred
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from testbed.contract.agent import Request
from testbed.contract.event import EventLog, Kind, Value
from testbed.contract.link import LinkSpec
from testbed.contract.network import End, Link, Network
from testbed.contract.plan import Plan
from testbed.workload import write_requests
from tests.fakes.run_folder import FakeRun, make_plan

MS = 1_000_000
ARRIVALS_MS = (400, 1_100, 1_500, 2_000)


@dataclass(frozen=True, slots=True)
class Told:
    """One event: when (ms), where, what."""

    ms: float
    node: str
    kind: Kind
    size: int
    fields: dict[str, Value]


def told(ms: float, node: str, kind: Kind, size: int = 0, **fields: Value) -> Told:
    return Told(ms, node, kind, size, fields)


def transfer(req: int, queued: int, acquired: int, acked: int) -> list[Told]:
    on: dict[str, Value] = {"req": req, "peer": "md1"}
    return [
        Told(queued, "p1", Kind.POOL_QUEUED, 0, on),
        Told(acquired, "p1", Kind.POOL_ACQUIRED, 0, on),
        Told(acquired, "p1", Kind.TRANSFER_START, 1_000, {**on, "blocks": 2}),
        Told(acked, "p1", Kind.TRANSFER_ACKED, 1_000, on),
        Told(acked, "p1", Kind.POOL_RELEASED, 0, on),
    ]


def answer(req: int, *times_ms: float) -> list[Told]:
    tokens = [
        told(ms, "c1", Kind.TOKEN, req=req, pos=i, source="md1") for i, ms in enumerate(times_ms)
    ]
    return [*tokens, told(times_ms[-1], "c1", Kind.REQUEST_DONE, req=req)]


def story() -> list[Told]:
    events = [told(ms, "c1", Kind.REQUEST_SENT, 1_000, req=i) for i, ms in enumerate(ARRIVALS_MS)]
    for req, uncached in enumerate((128, 256, 384)):
        events.append(
            told(450, "p1", Kind.PREFILL_START, req=req, uncached=uncached, context=1024 - uncached)
        )
    events += transfer(0, 500, 500, 1_500)
    events += transfer(1, 1_200, 1_500, 1_900)
    events += transfer(2, 1_600, 1_900, 2_800)
    events += answer(0, 1_600, 1_610)
    events += answer(1, 2_000, 2_010, 2_020)
    events += answer(2, 2_900, 2_910, 3_410)
    events.append(told(2_100, "c1", Kind.REQUEST_FAILED, req=3, reason="queue-full"))
    for ms, size, drops, backlog in (
        (500, 999, 7, 9_999),
        (1_500, 2_000, 1, 30),
        (3_500, 500, 2, 5),
    ):
        events.append(
            told(
                ms,
                "lab",
                Kind.LINK_SAMPLE,
                size,
                link="wan1",
                dir="forward",
                drops=drops,
                backlog=backlog,
                interval_ns=1_000 * MS,
            )
        )
    return events


def link(name: str, kind: str, a: str, b: str, delay_ns: int) -> Link:
    spec = LinkSpec(rate_bps=16_000, delay_ns=delay_ns, buffer_bytes=1_000)
    return Link(
        name=name,
        kind=kind,
        wire="w",
        a=End(node=a, interface="x", wire_device="a0"),
        b=End(node=b, interface="x", wire_device="b0"),
        inner=("i0", "i1"),
        forward=spec,
        backward=spec,
    )


def plan_of(
    requests: tuple[Request, ...], clock: str = "virtual", closed: int | None = None
) -> Plan:
    fake = make_plan(FakeRun(warm_up_s=1, measure_s=2, pool=1), requests)
    network = Network(
        nodes=fake.network.nodes,
        links=(
            link("acc-p1", "fabric", "p1", "tor-a", 2_000),
            link("wan1", "wan", "tor-a", "tor-b", 10 * MS),
            link("wan2", "wan", "tor-a", "tor-b", 30 * MS),
            link("acc-md1", "fabric", "tor-b", "md1", 3_000),
        ),
        routes=(),
        neighbours=(),
    )
    offered = fake.offered.model_copy(update={"legs": 2, "leg_payload_bps": 8_000.0})
    agents = tuple(agent.model_copy(update={"closed_loop": closed}) for agent in fake.agents)
    return fake.model_copy(
        update={"network": network, "offered": offered, "clock": clock, "agents": agents}
    )


class NoClock:
    def now_ns(self) -> int:
        raise RuntimeError("every event carries its time")


def write_run(
    folder: Path, events: list[Told], clock: str = "virtual", closed: int | None = None
) -> Path:
    requests = tuple(
        Request(
            id=i,
            at_ns=0 if closed else ms * MS,
            input_tokens=1_024,
            hit_tokens=768,
            output_tokens=2,
            blocks=2,
            wire_bytes=1_000,
            prefill="p1",
            decode="md1",
        )
        for i, ms in enumerate(ARRIVALS_MS)
    )
    return write_story(folder, plan_of(requests, clock, closed), requests, events)


def write_story(
    folder: Path, plan: Plan, requests: tuple[Request, ...], events: list[Told]
) -> Path:
    """Write plan, workload and events, each node's in order of time."""
    (folder / "events").mkdir(parents=True)
    (folder / "plan.json").write_text(plan.model_dump_json())
    write_requests(folder / "workload.jsonl", requests)
    for node in sorted({event.node for event in events}):
        with (folder / "events" / f"{node}.jsonl").open("w") as stream:
            log = EventLog(stream, node, NoClock())
            for event in sorted(events, key=lambda event: event.ms):
                if event.node == node:
                    log.emit(event.kind, event.size, at_ns=int(event.ms * MS), **event.fields)
            log.flush()
    return folder


def figure(metrics: object, path: str) -> object:
    for key in path.split("."):
        assert isinstance(metrics, dict)
        metrics = metrics[key]
    return metrics
