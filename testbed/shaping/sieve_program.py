"""The program of one sieve: picks packets out, drops or marks a share of them, counts.

It runs at the egress hook of the delay stage, where a frame has crossed the link's bottleneck.
Everything that it is asked for stands in its instructions, so the tag by which the kernel knows
it says it all; its map holds nothing but two counters. Which packet is hit is a function of the
seed and of how many fitted before (``hits``), never of the kernel's random numbers.
"""

from __future__ import annotations

import struct

from testbed.shaping.bpf_code import (
    FRAME,
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    U8,
    U16,
    U32,
    Code,
    tag_of,
)
from testbed.shaping.qdisc import U32_MAX, PacketFilter

NAME = "sieve"
COUNTERS = struct.Struct("=QQ")
"""Packets that fitted, and frames that were hit."""
_LOAD_BYTES, _STORE_BYTES, _FIX_IP_SUM = 26, 9, 10
_PROTOCOL, _SEGMENTS = 16, 164
"""Offsets in struct __sk_buff."""
_IPV4 = 0x0008
"""ETH_P_IP in network order, as x86-64 reads it."""
_ETHERNET, _IP_BYTES, _TCP_BYTES = 14, 20, 14
_TCP, _SYN, _ECN, _CE = 6, 0x02, 0x03, 0x03
_IP_AT, _TCP_AT, _WORD_AT = -24, -40, -48
"""Where both headers and one word lie below the frame pointer."""
_DROP, _CONTINUE = 2, -1
"""TC_ACT_SHOT; TC_ACT_UNSPEC: the next filter, then the qdisc."""
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
_U64 = 2**64 - 1


def hits(wanted: PacketFilter, number: int) -> bool:
    """Whether packet ``number`` (from 0) of those that fit is hit: the program's own rule."""
    if wanted.threshold == U32_MAX:
        return True
    word = (wanted.seed + (number + 1) * _STEP) & _U64
    word = ((word ^ word >> 30) * _FIRST) & _U64
    word = ((word ^ word >> 27) * _SECOND) & _U64
    return (word ^ word >> 31) >> 32 < wanted.threshold


def program(wanted: PacketFilter, map_fd: int) -> bytes:
    """The instructions; ``map_fd`` names the map in the process that loads them."""
    code = Code()
    code.alu_by("mov", R6, R1)
    code.load(U32, R1, R6, _PROTOCOL)
    code.jump_if("ne", R1, _IPV4, "pass")
    code.alu("mov", R2, _ETHERNET)
    _load_bytes(code, _IP_AT, _IP_BYTES)
    if wanted.between is not None:
        _between(code, *wanted.between)
    if wanted.opens or wanted.port is not None:
        _tcp(code, wanted)
    if wanted.above:
        code.load(U16, R1, FRAME, _IP_AT + 2)
        code.swap16(R1)
        code.jump_if("le", R1, wanted.above, "pass")
    if wanted.marks:
        code.load(U8, R1, FRAME, _IP_AT + 1)
        code.alu("and", R1, _ECN)
        code.jump_if("eq", R1, 0, "pass")
        code.jump_if("eq", R1, _CE, "pass")
    code.wide(R8, 0, map_fd)
    code.alu("mov", R1, 1)
    code.add_atomic(R8, 0, R1)
    if wanted.threshold != U32_MAX:
        _draw(code, wanted)
    _count(code)
    if wanted.marks:
        _mark(code)
    else:
        code.exit(_DROP)
    code.label("pass")
    code.exit(_CONTINUE)
    return code.assembled()


def tag(wanted: PacketFilter) -> bytes:
    """By which the kernel knows the program."""
    return tag_of(program(wanted, 0))


def _load_bytes(code: Code, at: int, size: int) -> None:
    """Copies bytes of the packet, from R2 on; one that is too short passes."""
    code.alu_by("mov", R1, R6)
    code.alu_by("mov", R3, FRAME)
    code.alu("add", R3, at)
    code.alu("mov", R4, size)
    code.call(_LOAD_BYTES)
    code.jump_if("ne", R0, 0, "pass")


def _between(code: Code, one: int, other: int) -> None:
    code.load(U32, R1, FRAME, _IP_AT + 12)
    code.load(U32, R2, FRAME, _IP_AT + 16)
    code.jump_if("eq", R1, one, "from one")
    code.jump_if("ne", R1, other, "pass")
    code.jump_if("ne", R2, one, "pass")
    code.jump("between")
    code.label("from one")
    code.jump_if("ne", R2, other, "pass")
    code.label("between")


def _tcp(code: Code, wanted: PacketFilter) -> None:
    code.load(U8, R1, FRAME, _IP_AT + 9)
    code.jump_if("ne", R1, _TCP, "pass")
    code.load(U8, R2, FRAME, _IP_AT)
    code.alu("and", R2, 15)
    code.alu("lsh", R2, 2)
    code.alu("add", R2, _ETHERNET)
    _load_bytes(code, _TCP_AT, _TCP_BYTES)
    if wanted.port is not None:
        for offset, otherwise in ((0, ""), (2, "pass")):
            code.load(U16, R1, FRAME, _TCP_AT + offset)
            code.swap16(R1)
            if otherwise:
                code.jump_if("ne", R1, wanted.port, otherwise)
            else:
                code.jump_if("eq", R1, wanted.port, "port")
        code.label("port")
    if wanted.opens:
        code.load(U8, R1, FRAME, _TCP_AT + 13)
        code.alu("and", R1, _SYN)
        code.jump_if("eq", R1, 0, "pass")


def _draw(code: Code, wanted: PacketFilter) -> None:
    """R1 is how many fitted before; those beyond the share pass."""
    code.alu("add", R1, 1)
    code.wide(R2, _STEP)
    code.alu_by("mul", R1, R2)
    code.wide(R2, wanted.seed)
    code.alu_by("add", R1, R2)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        code.alu_by("mov", R2, R1)
        code.alu("rsh", R2, shift)
        code.alu_by("xor", R1, R2)
        code.wide(R2, factor)
        code.alu_by("mul", R1, R2)
    code.alu_by("mov", R2, R1)
    code.alu("rsh", R2, 31)
    code.alu_by("xor", R1, R2)
    code.alu("rsh", R1, 32)
    code.jump_if("ge", R1, wanted.threshold, "pass")


def _count(code: Code) -> None:
    """A superframe counts as all its frames."""
    code.load(U32, R1, R6, _SEGMENTS)
    code.jump_if("ne", R1, 0, "counted")
    code.alu("mov", R1, 1)
    code.label("counted")
    code.add_atomic(R8, 8, R1)


def _mark(code: Code) -> None:
    """Sets CE and mends the header's checksum."""
    code.load(U16, R7, FRAME, _IP_AT)
    code.alu_by("mov", R4, R7)
    code.alu("or", R4, _CE << 8)
    code.store(U16, FRAME, _WORD_AT, R4)
    code.alu_by("mov", R1, R6)
    code.alu_by("mov", R3, R7)
    code.alu("mov", R2, _ETHERNET + 10)
    code.alu("mov", R5, 2)
    code.call(_FIX_IP_SUM)
    code.alu_by("mov", R1, R6)
    code.alu("mov", R2, _ETHERNET)
    code.alu_by("mov", R3, FRAME)
    code.alu("add", R3, _WORD_AT)
    code.alu("mov", R4, 2)
    code.alu("mov", R5, 0)
    code.call(_STORE_BYTES)
    code.exit(_CONTINUE)
