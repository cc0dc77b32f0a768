"""Shaping on the real kernel: pytest runs this inside the lab guest (see ../test_shaping.py)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.contract.link import (
    Distribution,
    FourState,
    GilbertElliott,
    Jitter,
    LinkSpec,
    RandomLoss,
    Slot,
)
from testbed.contract.network import End, Link, Network
from testbed.errors import FidelityError
from testbed.fidelity.calibrate import Effort, calibrate_links, require
from testbed.fidelity.row import CalibrationRow
from testbed.lab.tc import Wire, apply_link, link_counters, read_back
from testbed.lab.tc.dump import Reader
from testbed.lab.tc.request import ROOT
from testbed.shaping.compile import compile_link
from testbed.shaping.netlink_netem import decode_netem, encode_netem
from testbed.shaping.qdisc import Netem

PATHS = {"a": "/run/netns/sa", "w": "/run/netns/sw", "b": "/run/netns/sb"}
GBIT = 1_000_000_000
WAN = LinkSpec(
    rate_bps=10 * GBIT,
    delay_ns=10_000_000,
    buffer_bytes=25_000_000,
    superframe_bytes=9000,
    seed=42_424_242,
)
RACK = LinkSpec(rate_bps=400 * GBIT, delay_ns=2_000, buffer_bytes=16_000_000, seed=7)


def run(command: str) -> None:
    subprocess.run(command.split(), check=True, capture_output=True)


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> Iterator[None]:
    names = ("sa", "sw", "sb")
    for name in names:
        run(f"ip netns add {name}")
        for scope in ("all", "default"):
            quiet = f"echo 1 > /proc/sys/net/ipv6/conf/{scope}/disable_ipv6"
            subprocess.run(["ip", "netns", "exec", name, "sh", "-c", quiet], check=True)
    run("ip link add eth0 netns sa type veth peer name wa netns sw")
    run("ip link add i0 netns sw type veth peer name i1 netns sw")
    run("ip link add eth0 netns sb type veth peer name wb netns sw")
    for name, device in (
        ("sa", "eth0"), ("sw", "wa"), ("sw", "i0"), ("sw", "i1"), ("sw", "wb"), ("sb", "eth0"),
    ):  # fmt: skip
        run(f"ip -n {name} link set {device} mtu 9000 up")
    yield
    for name in names:
        run(f"ip netns del {name}")


def link(forward: LinkSpec, backward: LinkSpec) -> Link:
    return Link(
        name="wan1",
        kind="wan",
        wire="w",
        a=End(node="a", interface="eth0", wire_device="wa"),
        b=End(node="b", interface="eth0", wire_device="wb"),
        inner=("i0", "i1"),
        forward=forward,
        backward=backward,
    )


def calibrated(one: Link, effort: Effort = Effort.FULL) -> tuple[CalibrationRow, ...]:
    network = Network(nodes=(), links=(one,), routes=(), neighbours=())
    return calibrate_links(network, PATHS, effort)


def with_(spec: LinkSpec, **changes: object) -> LinkSpec:
    return LinkSpec.model_validate({**spec.model_dump(), **changes})


VARIETY = {
    "plain": WAN,
    "rack": RACK,
    "random loss": with_(WAN, loss=RandomLoss(share=0.1)),
    "bursts": with_(WAN, loss=GilbertElliott(p=0.01, r=0.3, bad_loss=0.8, good_loss=0.001)),
    "four states": with_(WAN, loss=FourState(p13=0.02, p31=0.4, p32=0.1, p23=0.3, p14=0.01)),
    "copies": with_(WAN, duplicate=0.05, corrupt=0.02),
    "reordering": with_(WAN, jitter=Jitter(spread_ns=1_000_000, reorder=True)),
    "pareto": with_(
        WAN,
        jitter=Jitter(spread_ns=500_000, reorder=True, distribution=Distribution.PARETO),
        loss=RandomLoss(share=0.01),
    ),
    "in order": with_(RACK, rate_bps=10 * GBIT, delay_ns=10**7, jitter=Jitter(spread_ns=200_000)),
    "no rate": with_(WAN, rate_bps=0),
}


@pytest.mark.parametrize("name", VARIETY)
def test_what_is_applied_reads_back_and_measures_as_asked(name: str) -> None:
    one = link(VARIETY[name], VARIETY[name])
    apply_link(PATHS["w"], one)
    assert all(check.ok for check in read_back(PATHS["w"], one))
    require(calibrated(one))


def test_slots_read_back() -> None:
    one = link(with_(WAN, slot=Slot(min_ns=50_000, max_ns=90_000, packets=8)), WAN)
    apply_link(PATHS["w"], one)
    assert all(check.ok for check in read_back(PATHS["w"], one))
    require(calibrated(one, Effort.QUICK))


WRONG = {
    "rate": ("i0 root netem rate 9900mbit limit 1191476", "rate"),
    "delay": ("wb root netem delay 10020us limit 600000", "delay"),
    "loss": ("wb root netem delay 10ms loss 1% limit 600000", "fate"),
    "limit": ("wb root netem delay 10ms loss 10% limit 100", "fields"),
    "kind": ("i0 root tbf rate 10gbit burst 1250000 limit 25000000", "fields"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_qdisc_fails_calibration(name: str) -> None:
    arguments, quantity = WRONG[name]
    one = link(with_(WAN, loss=RandomLoss(share=0.1)), RACK)
    apply_link(PATHS["w"], one)
    run(f"ip netns exec sw tc qdisc replace dev {arguments}")
    with pytest.raises(FidelityError, match="wan1"):
        read_back(PATHS["w"], one)
    rows = calibrated(one)
    wrong = [row for row in rows if not row.ok]
    assert any(quantity in row.quantity for row in wrong), rows
    assert {row.direction for row in wrong} == {"forward"}
    with pytest.raises(FidelityError, match="calibrate"):
        require(rows)


def test_another_seed_fails_calibration() -> None:
    one = link(with_(WAN, loss=RandomLoss(share=0.1)), RACK)
    apply_link(PATHS["w"], one)
    delay = next(spec for spec in compile_link(one.forward).delay if isinstance(spec, Netem))
    with Wire(PATHS["w"]) as wire:
        wire.replace_root("wb", encode_netem(replace(delay, seed=1)))
    assert "fate of 10000 frames" in [row.quantity for row in calibrated(one) if not row.ok]


def test_a_missing_buffer_bound_is_noticed_twice() -> None:
    one = link(WAN, WAN)
    apply_link(PATHS["w"], one)
    run("ip netns exec sw tc filter del dev i0 egress")
    with pytest.raises(FidelityError, match="police"):
        read_back(PATHS["w"], one)
    wrong = [row.quantity for row in calibrated(one) if not row.ok]
    assert len(wrong) == 2
    assert "fields read back" in wrong[0]
    assert wrong[1].startswith("buffer")


def test_other_departure_times_are_noticed() -> None:
    fifo = VARIETY["in order"]
    other = with_(fifo, seed=8)
    apply_link(PATHS["w"], link(other, fifo))
    wrong = [row for row in calibrated(link(fifo, fifo)) if not row.ok]
    assert {row.direction for row in wrong} == {"forward"}
    assert any("jitter of each frame" in row.quantity for row in wrong)


def test_a_second_apply_starts_counters_and_draws_anew() -> None:
    one = link(WAN, RACK)
    apply_link(PATHS["w"], one)
    calibrated(one, Effort.QUICK)
    used = link_counters(PATHS["w"], one)
    assert used.forward.packets > 0
    assert used.backward.bytes > 0
    apply_link(PATHS["w"], one)
    fresh = link_counters(PATHS["w"], one)
    assert (fresh.forward.packets, fresh.forward.bytes, fresh.backward.drops) == (0, 0, 0)


def test_overflow_is_counted_as_drops_and_loss_as_lost() -> None:
    one = link(with_(WAN, loss=RandomLoss(share=0.1)), RACK)
    apply_link(PATHS["w"], one)
    calibrated(one)
    counters = link_counters(PATHS["w"], one)
    assert counters.forward.drops > 0
    assert 1_000 < counters.forward.lost < 2_000
    assert counters.backward.lost == 0


TC = {
    "delay 10ms limit 2000": Netem(limit=2000, latency_ns=10_000_000),
    "rate 400gbit limit 100000": Netem(limit=100_000, rate=50_000_000_000),
    "loss gemodel 1% 30% 80% 0.1% limit 9": None,
    "delay 5ms slot 100us 200us packets 5 bytes 9000 limit 9": None,
}


@pytest.mark.parametrize("arguments", TC)
def test_our_bytes_leave_the_kernel_in_the_state_that_tcs_did(arguments: str) -> None:
    def dump(wire: Reader) -> bytes:
        index = wire.devices()["i0"].index
        return next(q.options for q in wire.qdiscs() if q.index == index and q.parent == ROOT)

    one = link(WAN, WAN)
    apply_link(PATHS["w"], one)
    run("ip netns exec sw tc qdisc del dev i0 root")
    run(f"ip netns exec sw tc qdisc add dev i0 root handle 1: netem {arguments}")
    with Reader(PATHS["w"]) as reader, Wire(PATHS["w"]) as wire:
        theirs = dump(reader)
        wanted = decode_netem(theirs)
        known = TC[arguments]
        if known is not None:
            assert wanted == Netem(known.limit, known.latency_ns, rate=known.rate, seed=wanted.seed)
        run("ip netns exec sw tc qdisc replace dev i0 root handle 1: netem limit 3")
        wire.replace_root("i0", encode_netem(wanted))
        assert dump(reader) == theirs
