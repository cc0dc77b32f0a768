"""The program of a sieve, instruction by instruction, against its rule in one line of Python."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.shaping.compile import address_word
from testbed.shaping.qdisc import U32_MAX, PacketFilter
from testbed.shaping.sieve_program import COUNTERS, hits, program, tag
from tests.fakes.bpf_machine import CONTINUE, DROP, Machine

pytestmark = pytest.mark.unit
ADDRESSES = ("10.1.1.2", "10.2.1.2", "10.2.2.2", "200.255.1.130")
PORTS = (7000, 7001, 40_000)
SYN, ACK = 0x02, 0x10


@dataclass(frozen=True)
class Packet:
    """What a sieve looks at."""

    source: str = ADDRESSES[0]
    target: str = ADDRESSES[1]
    ports: tuple[int, int] = (40_000, 7001)
    flags: int = ACK
    payload: int = 100
    ecn: int = 2
    protocol: int = 6
    options: int = 0
    ethertype: int = 0x0800

    @property
    def size(self) -> int:
        return 20 + self.options + 20 + self.payload

    def bytes(self) -> bytearray:
        addresses = IPv4Address(self.source).packed + IPv4Address(self.target).packed
        head = struct.pack(
            "!BBHHHBBH", 0x45 + self.options // 4, 0x80 | self.ecn, self.size, 1, 0x4000, 64,
            self.protocol, 0,
        )  # fmt: skip
        header = head + addresses + bytes(self.options)
        header = header[:10] + struct.pack("!H", ~folded(header) & 0xFFFF) + header[12:]
        tcp = struct.pack("!HHIIBBHHH", *self.ports, 1, 2, 0x50, self.flags, 100, 0, 0)
        ethernet = bytes(12) + struct.pack("!H", self.ethertype)
        return bytearray(ethernet + header + tcp + bytes(self.payload))


def folded(header: bytes) -> int:
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def fits(wanted: PacketFilter, packet: Packet) -> bool:
    """The rule, said another way."""
    ends = {address_word(packet.source), address_word(packet.target)}
    needs_tcp = wanted.opens or wanted.port is not None
    return (
        packet.ethertype == 0x0800
        and (wanted.between is None or ends == set(wanted.between))
        and not (needs_tcp and packet.protocol != 6)
        and (wanted.port is None or wanted.port in packet.ports)
        and not (wanted.opens and not packet.flags & SYN)
        and not (wanted.above and packet.size <= wanted.above)
        and not (wanted.marks and packet.ecn in (0, 3))
    )


packets = st.builds(
    Packet,
    source=st.sampled_from(ADDRESSES),
    target=st.sampled_from(ADDRESSES),
    ports=st.tuples(st.sampled_from(PORTS), st.sampled_from(PORTS)),
    flags=st.sampled_from((SYN, ACK, SYN | ACK, 0x18)),
    payload=st.integers(0, 300),
    ecn=st.integers(0, 3),
    protocol=st.sampled_from((6, 6, 6, 17)),
    options=st.sampled_from((0, 8)),
    ethertype=st.sampled_from((0x0800, 0x0800, 0x0806)),
)
sieves = st.builds(
    PacketFilter,
    number=st.just(0),
    marks=st.booleans(),
    opens=st.booleans(),
    between=st.none() | st.permutations(ADDRESSES).map(
        lambda some: (address_word(some[0]), address_word(some[1]))
    ),
    port=st.none() | st.sampled_from(PORTS),
    above=st.sampled_from((0, 150, 68)),
    threshold=st.sampled_from((1, 2**30, 2**31 + 5, U32_MAX)),
    seed=st.integers(0, 2**64 - 1),
)  # fmt: skip


@given(wanted=sieves, some=st.lists(packets, max_size=12), segments=st.sampled_from((0, 1, 7)))
def test_it_hits_what_its_rule_says_and_counts_it(
    wanted: PacketFilter, some: list[Packet], segments: int
) -> None:
    code, counters = program(wanted, 0), bytearray(COUNTERS.size)
    fitted = hit = 0
    for packet in some:
        data = packet.bytes()
        answer = Machine(data, counters, segments=segments).run(code)
        struck = fits(wanted, packet) and hits(wanted, fitted)
        fitted += fits(wanted, packet)
        hit += struck * max(segments, 1)
        assert answer == (DROP if struck and not wanted.marks else CONTINUE)
        marked = packet.bytes()
        if struck and wanted.marks:
            marked[15] |= 3
            assert folded(bytes(data[14 : 34 + packet.options])) == 0xFFFF, "a sound checksum"
            marked[24:26] = data[24:26]
        assert data == marked
    assert COUNTERS.unpack(counters) == (fitted, hit)


@given(st.integers(0, 2**64 - 1), st.sampled_from((0.001, 0.1, 0.5, 0.9)))
def test_a_share_is_hit_and_a_seed_decides_which(seed: int, share: float) -> None:
    wanted = PacketFilter(number=0, threshold=round(share * U32_MAX), seed=seed)
    drawn = [hits(wanted, number) for number in range(4_000)]
    spread = (share * (1 - share) * 4_000) ** 0.5
    assert abs(sum(drawn) - share * 4_000) < 6 * spread + 1
    other = PacketFilter(number=0, threshold=wanted.threshold, seed=seed ^ 1)
    assert share < 0.1 or drawn != [hits(other, number) for number in range(4_000)]


@given(one=sieves, other=sieves)
def test_the_tag_tells_any_two_apart(one: PacketFilter, other: PacketFilter) -> None:
    same = program(one, 0) == program(other, 0)
    assert (tag(one) == tag(other)) == same
    if one.threshold == other.threshold != U32_MAX:
        assert same == (one == other)


def test_the_number_of_its_map_is_no_part_of_it() -> None:
    wanted = PacketFilter(number=0, port=7001)
    assert program(wanted, 3) != program(wanted, 4)
    assert len(tag(wanted)) == 8


def test_a_packet_that_is_cut_short_passes() -> None:
    whole = Packet().bytes()
    for size in (20, 40):
        counters = bytearray(COUNTERS.size)
        code = program(PacketFilter(number=0, port=7001), 0)
        assert Machine(whole[:size], counters).run(code) == CONTINUE
        assert counters == bytes(COUNTERS.size)
