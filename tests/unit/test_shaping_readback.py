"""Comparing and counting, on dumps made up here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.contract.link import LinkSpec, RandomLoss
from testbed.contract.network import End, Link
from testbed.lab.tc.applied import FieldCheck
from testbed.lab.tc.compare import check_way
from testbed.lab.tc.counters import DirectionCounters, count
from testbed.lab.tc.dump import Device, Entry, Stats
from testbed.lab.tc.path import ways
from testbed.lab.tc.request import CLSACT, EGRESS, INGRESS, ROOT
from testbed.shaping.compile import compile_link
from testbed.shaping.netlink_action import RedirectTo, encode_police, encode_redirect
from testbed.shaping.netlink_netem import encode_netem
from testbed.shaping.qdisc import Netem, Police

SPEC = LinkSpec(
    rate_bps=10_000_000_000,
    delay_ns=10_000_000,
    buffer_bytes=25_000_000,
    superframe_bytes=9000,
    loss=RandomLoss(share=0.1),
    seed=7,
)
LINK = Link(
    name="wan1",
    kind="wan",
    wire="w",
    a=End(node="a", interface="eth0", wire_device="wa"),
    b=End(node="b", interface="eth0", wire_device="wb"),
    inner=("i0", "i1"),
    forward=SPEC,
    backward=SPEC,
)
DEVICES = {
    name: Device(index, name, True, 9000) for index, name in enumerate(("wa", "i0", "i1", "wb"), 1)
}
NOTHING = Stats(0, 0, 0, 0, 0)


def entry(device: str, parent: int, kind: str, options: bytes, stats: Stats = NOTHING) -> Entry:
    return Entry(DEVICES[device].index, 0x10000, parent, kind, options, stats)


def forward_world() -> tuple[list[Entry], list[Entry]]:
    """(qdiscs, filters) of a wire whose forward direction is as planned."""
    stages = compile_link(SPEC)
    police, rate = stages.rate
    (delay,) = stages.delay
    assert isinstance(police, Police)
    assert isinstance(rate, Netem)
    assert isinstance(delay, Netem)
    to_rate, to_end = RedirectTo(DEVICES["i0"].index), RedirectTo(DEVICES["wb"].index)
    qdiscs = [
        entry("i0", ROOT, "netem", encode_netem(rate)),
        entry("wb", ROOT, "netem", encode_netem(delay)),
    ]
    filters = [
        entry("wa", INGRESS, "matchall", encode_redirect(to_rate)),
        entry("i1", INGRESS, "matchall", encode_redirect(to_end)),
        entry("i0", EGRESS, "matchall", encode_police(police)),
    ]
    return qdiscs, filters


def checks(qdiscs: list[Entry], filters: list[Entry]) -> list[FieldCheck]:
    def filters_at(index: int, parent: int) -> tuple[Entry, ...]:
        return tuple(f for f in filters if (f.index, f.parent) == (index, parent))

    forward, _ = ways(LINK)
    return list(check_way(forward, DEVICES, tuple(qdiscs), filters_at))


def wrong(qdiscs: list[Entry], filters: list[Entry]) -> list[str]:
    return [check.field for check in checks(qdiscs, filters) if not check.ok]


def test_a_wire_as_planned_has_no_difference() -> None:
    found = checks(*forward_world())
    assert len(found) > 50
    assert all(check.ok for check in found)


DELAY = next(spec for spec in compile_link(SPEC).delay if isinstance(spec, Netem))
CHANGED = {
    "latency_ns": replace(DELAY, latency_ns=10_000_001),
    "limit": replace(DELAY, limit=9),
    "loss": replace(DELAY, loss=5),
    "seed": replace(DELAY, seed=8),
    "duplicate": replace(DELAY, duplicate=1),
    "corrupt": replace(DELAY, corrupt=1),
    "jitter_ns": replace(DELAY, jitter_ns=1),
    "rate": replace(DELAY, rate=1),
    "gap": replace(DELAY, gap=1),
    "packet_overhead": replace(DELAY, packet_overhead=4),
    "delay_correlation": replace(DELAY, delay_correlation=1),
    "reorder": replace(DELAY, reorder=1),
    "ecn": replace(DELAY, ecn=True),
}


@pytest.mark.parametrize("field", CHANGED)
def test_one_field_that_differs_is_the_one_that_is_named(field: str) -> None:
    qdiscs, filters = forward_world()
    qdiscs[1] = replace(qdiscs[1], options=encode_netem(CHANGED[field]))
    assert wrong(qdiscs, filters) == [f"netem.{field}"]


def test_another_kind_of_qdisc_is_named() -> None:
    qdiscs, filters = forward_world()
    qdiscs[0] = replace(qdiscs[0], kind="tbf", options=b"")
    assert wrong(qdiscs, filters)[0] == "qdisc"


def test_an_extra_qdisc_is_named() -> None:
    qdiscs, filters = forward_world()
    qdiscs.append(entry("wb", 0x10001, "fq", b""))
    assert wrong(qdiscs, filters) == ["qdisc"]


def test_a_redirect_to_another_device_is_named() -> None:
    qdiscs, filters = forward_world()
    filters[0] = replace(filters[0], options=encode_redirect(RedirectTo(DEVICES["wb"].index)))
    assert wrong(qdiscs, filters) == ["redirect"]


def test_a_missing_policer_is_named_field_by_field() -> None:
    qdiscs, filters = forward_world()
    assert wrong(qdiscs, filters[:2]) == ["police.rate", "police.burst_ns", "police.largest"]


def test_a_second_filter_is_named() -> None:
    qdiscs, filters = forward_world()
    assert "redirect" in wrong(qdiscs, [*filters, filters[0]])


def test_counters_take_the_bottleneck_the_overflow_and_the_loss() -> None:
    dump = [
        entry("i0", ROOT, "netem", b"", Stats(1_000, 10, 1, 500, 5)),
        entry("i0", CLSACT, "clsact", b"", Stats(9_999, 99, 2, 0, 0)),
        entry("wb", ROOT, "netem", b"", Stats(800, 8, 4, 300, 3)),
    ]
    counters = count((LINK,), DEVICES, dump)["wan1"]
    assert counters.forward == DirectionCounters(1_000, 10, 3, 4, 500, 300)
    assert counters.backward == DirectionCounters(0, 0, 0, 0, 0, 0)
