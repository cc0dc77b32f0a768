"""Made-up histories of delays: one pair, two legs, one RLD, and whatever goes wrong with them.

A window from 1 s to 3 s; ``p1`` sends to ``md1`` from port 20000 on, over ``wan1`` or ``wan2``;
each leg carries 80 Mbit/s and takes 10 ms; ``c1`` is beside ``p1`` and ``r1``.
"""

from __future__ import annotations

from pathlib import Path

from testbed.contract.agent import Request
from testbed.contract.ailment import Stall
from testbed.contract.event import Kind, Value
from testbed.contract.fault import (
    AgentFault,
    Down,
    Effect,
    LinkFault,
    NodeFault,
    PlannedFault,
    Span,
)
from testbed.contract.link import LinkSpec
from testbed.contract.network import End, Interface, Link, Network, NextHop, Node, Route
from testbed.contract.plan import Plan
from testbed.contract.role import NodeKind
from testbed.metrics.attribution import Attribution, attribute
from testbed.metrics.events import read_events
from testbed.metrics.run import measured, read_run
from tests.fakes.hand_run import MS, Told, told, write_story
from tests.fakes.serving_run import serving_plan, streamed

RATE_BPS = 80_000_000
SIZE = 1_000_000
"""Bytes of a transfer: 100 ms at that rate."""
THRESHOLD_S = 0.2


def delayed_plan(requests: tuple[Request, ...], faults: tuple[PlannedFault, ...]) -> Plan:
    plan = serving_plan(requests)
    agents = tuple(
        agent.model_copy(update={"address": f"10.1.{number}.2"})
        for number, agent in enumerate(plan.agents, 1)
    )
    links = (
        _link("acc-c1", "fabric", "c1", "tor-a", 2_000),
        _link("acc-p1", "fabric", "p1", "tor-a", 2_000),
        _link("acc-r1", "fabric", "r1", "tor-a", 2_000),
        _link("wan1", "wan", "tor-a", "tor-b", 10 * MS, RATE_BPS),
        _link("wan2", "wan", "tor-a", "tor-b", 10 * MS, RATE_BPS),
        _link("acc-md1", "fabric", "tor-b", "md1", 2_000),
    )
    seed = (("net.ipv4.fib_multipath_hash_seed", "2"),)
    nodes = tuple(
        Node(name=name, kind=NodeKind.ROUTER, site=name[-1], sysctls=seed,
             interfaces=(Interface(name="x", mac="02:7d:00:00:00:01"),))
        for name in ("tor-a", "tor-b")
    )  # fmt: skip
    hops = tuple(NextHop(via="10.100.1.2", interface=f"{name}-a") for name in ("wan1", "wan2"))
    routes = (Route(node="tor-a", destination="10.1.0.0/16", hops=hops),)
    network = Network(nodes=nodes, links=links, routes=routes, neighbours=())
    return plan.model_copy(update={"network": network, "agents": agents, "faults": faults})


def _link(
    name: str, kind: str, a: str, b: str, delay_ns: int, rate_bps: int = 100_000_000_000
) -> Link:
    spec = LinkSpec(rate_bps=rate_bps, delay_ns=delay_ns, buffer_bytes=1_000_000, mtu=1_500)
    return Link(
        name=name, kind=kind, wire="w",
        a=End(node=a, interface=f"{name}-a", wire_device="a0"),
        b=End(node=b, interface=f"{name}-b", wire_device="b0"),
        inner=("i0", "i1"), forward=spec, backward=spec,
    )  # fmt: skip


def on_link(name: str, effect: Effect | None = None, link: str = "wan1") -> LinkFault:
    return LinkFault(
        name=name, spans=(Span(begin_ns=MS, end_ns=2 * MS),), links=(link,), forward=True,
        backward=True, effect=effect or Down(),
    )  # fmt: skip


def pausing(name: str, node: str) -> NodeFault:
    return NodeFault(name=name, spans=(Span(begin_ns=MS),), nodes=(node,), act="pause")


def stalling(name: str, node: str) -> AgentFault:
    return AgentFault(name=name, spans=(Span(begin_ns=MS),), nodes=(node,), effect=Stall())


def in_force(fault: str, subject: str, begin: float, end: float | None) -> list[Told]:
    """The record of a fault, in milliseconds."""
    began = told(begin, "lab", Kind.FAULT_BEGAN, fault=fault, subject=subject)
    if end is None:
        return [began]
    return [began, told(end, "lab", Kind.FAULT_ENDED, fault=fault, subject=subject)]


def sent(
    req: int, queued: float, acquired: float, acked: float, conn: int = 0, size: int = SIZE,
    retrans: int = 0, cwnd: int = 1_000, peer: str = "md1",
) -> list[Told]:  # fmt: skip
    """One transfer of ``p1``."""
    on: dict[str, Value] = {"req": req, "peer": peer, "conn": conn}
    seen: dict[str, Value] = {**on, "retrans": retrans, "cwnd": cwnd, "rtt_us": 20_000}
    return [
        told(queued, "p1", Kind.POOL_QUEUED, req=req, peer=peer),
        Told(acquired, "p1", Kind.POOL_ACQUIRED, 0, on),
        Told(acquired, "p1", Kind.TRANSFER_START, size, {**on, "blocks": 1}),
        told(acked, peer, Kind.KV_VERIFIED, size, req=req),
        Told(acked, "p1", Kind.TRANSFER_ACKED, size, on),
        Told(acked, "p1", Kind.TCP_INFO, 0, seen),
        Told(acked, "p1", Kind.POOL_RELEASED, 0, on),
    ]


def asked(req: int, at: float, prefilled: float, started: float | None = None) -> list[Told]:
    """A question, its route, and its prefill, which begins at once if nothing is said."""
    begin = at + 2 if started is None else started
    routed: dict[str, Value] = {
        "req": req, "prefill_hit": 0, "decode_hit": 0, "pipeline": "P-RLD-MD", "prefill": "p1",
        "decode": "md1", "reason": "hit-below-threshold",
    }  # fmt: skip
    return [
        told(at, "c1", Kind.REQUEST_SENT, 1, req=req),
        Told(at + 1, "rt1", Kind.REQUEST_ROUTED, 0, routed),
        told(at + 2, "p1", Kind.PREFILL_QUEUED, req=req),
        told(begin, "p1", Kind.PREFILL_START, req=req, uncached=1, context=0),
        told(prefilled, "p1", Kind.PREFILL_END, req=req),
    ]


def landed(req: int, admitted: float, on_device: float, over: float) -> list[Told]:
    """MD from the room for a sequence to its first token."""
    return [
        told(admitted, "md1", Kind.SEQUENCE_ADMITTED, req=req),
        told(on_device, "md1", Kind.HANDOFF_START, req=req, mode="catch-up", heard=1),
        told(over, "md1", Kind.HANDOFF_END, req=req, position=8),
    ]


def tokens(req: int, source: str, first: int, *times_ms: float) -> list[Told]:
    return streamed(req, source, first, *times_ms)


def steady(begin: float, count: int, step: float = 20) -> tuple[float, ...]:
    return tuple(begin + step * i for i in range(count))


def sampled(link: str, at: float, size: int = 0, direction: str = "forward", drops: int = 0,
            lost: int = 0, backlog: int = 0) -> Told:  # fmt: skip
    """A sample over the 100 ms before ``at``."""
    return told(
        at, "lab", Kind.LINK_SAMPLE, size, link=link, dir=direction, packets=1, drops=drops,
        lost=lost, backlog=backlog, interval_ns=100 * MS,
    )  # fmt: skip


def explained(
    folder: Path, events: list[Told], *faults: PlannedFault, requests: int = 4
) -> Attribution:
    """What the search says of this history."""
    asked_for = tuple(
        Request(
            id=i, at_ns=1_000 * MS + i, input_tokens=1_024, hit_tokens=0, output_tokens=60,
            blocks=2, wire_bytes=SIZE, prefill="p1", decode="md1",
        )
        for i in range(requests)
    )  # fmt: skip
    write_story(folder, delayed_plan(asked_for, faults), asked_for, events)
    run = read_run(folder)
    events_read = read_events(folder)
    return attribute(run, events_read, measured(run, events_read), THRESHOLD_S)
