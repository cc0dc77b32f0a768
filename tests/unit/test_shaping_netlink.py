"""The option bytes: against dumps of what iproute2 6.1 made the 6.12 kernel hold."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import FidelityError
from testbed.shaping.attribute import attribute, attributes, table
from testbed.shaping.netlink_action import (
    RedirectTo,
    decode_matchall,
    encode_police,
    encode_redirect,
)
from testbed.shaping.netlink_fq import decode_fq, encode_fq
from testbed.shaping.netlink_htb import (
    decode_htb,
    decode_htb_class,
    encode_htb,
    encode_htb_class,
)
from testbed.shaping.netlink_netem import decode_netem, encode_netem
from testbed.shaping.netlink_tbf import as_dumped, decode_tbf, encode_tbf
from testbed.shaping.qdisc import (
    Fq,
    GeModel,
    GiModel,
    Htb,
    HtbClass,
    Netem,
    Police,
    SlotConfig,
    Tbf,
)

TAIL = "0c000e00"
"""Header of TCA_NETEM_PRNG_SEED; the eight bytes after it are the seed."""
PLAIN = (
    "100001000000000000000000000000000c00030000000000000000000c0004000000000000000000"
    "1400060000000000000000000000000000000000"
)
PAD = "04000900"

# What `tc qdisc add … netem ARGUMENTS` left in the kernel, dumped with RTM_GETQDISC.
NETEM = {
    "delay 10ms limit 2000": (
        "5a620200d0070000000000000000000000000000000000000c000a0080969800000000000c000b00"
        "0000000000000000" + PLAIN + PAD + TAIL + "8d296d38ad53c6aa",
        Netem(limit=2000, latency_ns=10_000_000, seed=0xAAC653AD386D298D),
    ),
    "rate 400gbit limit 100000": (
        "00000000a0860100000000000000000000000000000000000c000a0000000000000000000c000b00"
        "0000000000000000100001000000000000000000000000000c00030000000000000000000c000400"
        "00000000000000000c00080000743ba40b00000014000600ffffffff000000000000000000000000"
        + TAIL
        + "ed5e648eeccc0cea",
        Netem(limit=100_000, rate=50_000_000_000, seed=0xEA0CCCEC8E645EED),
    ),
    "delay 10ms 1ms limit 5000 loss random 10% duplicate 1% corrupt 0.5%": (
        "5a620200881300009a99991900000000295c8f02093d00000c000a0080969800000000000c000b00"
        "40420f0000000000100001000000000000000000000000000c00030000000000000000000c000400"
        "14ae4701000000001400060000000000000000000000000000000000"
        + PAD
        + TAIL
        + "e00a77a11ad95b06",
        Netem(
            limit=5000,
            latency_ns=10_000_000,
            jitter_ns=1_000_000,
            loss=0x1999999A,
            duplicate=0x028F5C29,
            corrupt=0x0147AE14,
            seed=0x065BD91AA1770AE0,
        ),
    ),
    "loss gemodel 1% 30% 80% 0.1% limit 1000": (
        "00000000e8030000000000000000000000000000000000000c000a0000000000000000000c000b00"
        "0000000000000000"
        + PLAIN
        + "1800050014000200295c8f02cccccc4c3333333337894100"
        + PAD
        + TAIL
        + "ca45f302b5647e18",
        Netem(
            limit=1000,
            loss_model=GeModel(p=0x028F5C29, r=0x4CCCCCCC, h=0x33333333, k1=0x00418937),
            seed=0x187E64B502F345CA,
        ),
    ),
    "loss state 2% 40% 10% 30% 1% limit 1000": (
        "00000000e8030000000000000000000000000000000000000c000a0000000000000000000c000b00"
        "0000000000000000"
        + PLAIN
        + "1c0005001800010052b81e05666666669a999919295c8f02cccccc4c"
        + TAIL
        + "6a83008d0c39ae50",
        Netem(
            limit=1000,
            loss_model=GiModel(
                p13=0x051EB852, p31=0x66666666, p32=0x1999999A, p14=0x028F5C29, p23=0x4CCCCCCC
            ),
            seed=0x50AE390C8D00836A,
        ),
    ),
    "delay 5ms slot 100us 200us packets 5 bytes 9000 limit 1000": (
        "2d310100e8030000000000000000000000000000000000000c000a00404b4c00000000000c000b00"
        "0000000000000000"
        + PLAIN
        + "2c000c00a086010000000000400d030000000000050000002823000000000000000000000000000000000000"
        + TAIL
        + "b74181bb500e1c65",
        Netem(
            limit=1000,
            latency_ns=5_000_000,
            slot=SlotConfig(100_000, 200_000, 5, 9000),
            seed=0x651C0E50BB8141B7,
        ),
    ),
}


@pytest.mark.parametrize("arguments", NETEM)
def test_a_dump_of_what_tc_configured_is_understood(arguments: str) -> None:
    dump, wanted = NETEM[arguments]
    assert decode_netem(bytes.fromhex(dump)) == wanted


@pytest.mark.parametrize("arguments", NETEM)
def test_the_encoder_says_what_the_kernel_dumps_but_for_order_and_padding(arguments: str) -> None:
    dump, wanted = NETEM[arguments]
    kernel, ours = bytes.fromhex(dump), encode_netem(wanted)
    assert ours[:24] == kernel[:24]
    said = table(ours, 24)
    assert {kind: said[kind] for kind in table(kernel, 24) if kind != 9} == {
        kind: data for kind, data in attributes(kernel, 24) if kind != 9
    }


def test_the_encoder_gives_these_very_bytes() -> None:
    spec = Netem(limit=2000, latency_ns=2_000, seed=42_424_242)
    assert encode_netem(spec).hex() == (
        "1f000000d0070000000000000000000000000000000000000c000a00d0070000000000000c000b00"
        "0000000000000000" + PLAIN + "08000700000000000c000e00b257870200000000"
    )


def test_tbf_and_htb_dumps_of_tc_are_understood() -> None:
    ten = "280001000001000000000000807c814a00000000000000000000000040787d01083d000000000000"
    fast = (
        "280001000001000000000000ffffffff00000000000000000000000040787d01700200000000000"
        "0040008000c00040000743ba40b000000"
    )
    assert decode_tbf(bytes.fromhex(ten)) == Tbf(1_250_000_000, 1_249_920, 25_000_000)
    assert decode_tbf(bytes.fromhex(fast)) == Tbf(50_000_000_000, 1_996_800, 25_000_000)
    root = "18000200110003000a00000016000000000000000000000008000500e8030000"
    assert decode_htb(bytes.fromhex(root)) == Htb(default_class=0x16)
    child = (
        "300001000001000000000000ffffffff0001000000000000ffffffff7102000071020000400d0300"
        "0000000001000000040008000c00060000743ba40b000000040008000c00070000743ba40b000000"
    )
    fifty = 50_000_000_000
    assert decode_htb_class(bytes.fromhex(child)) == HtbClass(
        fifty, fifty, 40_000, 40_000, 200_000, 1
    )


def test_a_police_dump_of_tc_is_understood() -> None:
    tbf = (
        "3c000100010000000200000000000000b4c40400ffffffff0001000000000000807c814a"
        "000000000000000000000000010000000100000000000000"
    )
    action = attribute(1, b"police\0") + attribute(2, bytes.fromhex(tbf))
    options = attribute(2, attribute(1, action))
    assert decode_matchall(options) == Police(rate=1_250_000_000, burst_ns=0x4C4B4 * 64)


U32 = st.integers(0, 2**32 - 1)
LOSS = st.one_of(
    st.none(), st.builds(GeModel, U32, U32, U32, U32), st.builds(GiModel, U32, U32, U32, U32, U32)
)
TIME = st.integers(1, 2**62)


@given(
    st.builds(
        Netem,
        limit=U32,
        latency_ns=st.integers(0, 2**62),
        jitter_ns=st.integers(0, 2**31 - 1),
        rate=st.integers(0, 2**63),
        loss=U32,
        loss_model=LOSS,
        duplicate=U32,
        corrupt=U32,
        ecn=st.booleans(),
        slot=st.none() | st.builds(SlotConfig, TIME, TIME, st.integers(0, 2**31 - 1)),
        seed=st.integers(0, 2**64 - 1),
    )
)
def test_netem_survives_encoding(spec: Netem) -> None:
    assert decode_netem(encode_netem(spec)) == spec


RATES = st.integers(1_000, 2**40)


@given(RATES, st.integers(1, 2**30), U32)
def test_tbf_survives_encoding_up_to_the_tick_of_its_burst(
    rate: int, burst: int, limit: int
) -> None:
    spec = Tbf(rate, burst, limit)
    if burst * 10**9 // rate // 64 < 2**32:
        assert decode_tbf(encode_tbf(spec)) == as_dumped(spec)


@given(RATES, RATES, st.integers(0, 2**32 - 1), U32)
def test_htb_and_police_and_fq_survive_encoding(
    rate: int, ceil: int, ticks: int, some: int
) -> None:
    child = HtbClass(rate, ceil, ticks * 64, ticks * 64, some, 3)
    assert decode_htb_class(encode_htb_class(child)) == child
    root = Htb(some, 10, some)
    assert decode_htb(encode_htb(root)) == root
    police = Police(rate, ticks * 64)
    assert decode_matchall(encode_police(police)) == police
    room = Fq(limit=some)
    assert decode_fq(encode_fq(room)) == room


@given(st.integers(1, 2**31 - 1))
def test_a_redirect_survives_encoding(index: int) -> None:
    assert decode_matchall(encode_redirect(RedirectTo(index))) == RedirectTo(index)


def test_a_length_that_leaves_the_buffer_is_an_error() -> None:
    with pytest.raises(FidelityError, match="leaves a buffer"):
        list(attributes(struct.pack("=HH", 40, 1) + b"abcd"))


@given(st.binary(max_size=80))
def test_no_bytes_crash_a_decoder(data: bytes) -> None:
    for decode in (decode_tbf, decode_htb, decode_htb_class, decode_matchall, decode_fq):
        try:
            decode(data)
        except FidelityError:
            continue
