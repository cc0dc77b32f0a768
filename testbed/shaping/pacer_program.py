"""The program that gives every packet its departure time, as BPF instructions.

It runs at the egress hook, before the qdisc: ``tstamp = now + delay at now``; fq, below
netem, holds each packet until its tstamp. Assembled by hand (linux/bpf.h) because twenty
instructions do not justify a compiler on every machine. The delays are one array map
value of BINS + 1 unsigned 32-bit numbers; the last repeats the first.
"""

from __future__ import annotations

import hashlib
import struct

from testbed.shaping.qdisc import Pacer

_INSTRUCTION = struct.Struct("=BBhi")
_R0, _R1, _R2, _R3, _R4, _R5, _R6, _R7 = range(8)
_KTIME_GET_NS = 5
_TSTAMP_OFFSET = 152
"""offsetof(struct __sk_buff, tstamp)."""
_PSEUDO_MAP_VALUE = 2
_CONTINUE = -1
"""TC_ACT_UNSPEC: go on to the qdisc."""
_LDDW, _LDXW, _STXDW, _CALL, _EXIT = 0x18, 0x61, 0x7B, 0x85, 0x95
_MOV, _MOV_K, _ADD, _SUB, _MUL, _AND = 0xBF, 0xB7, 0x0F, 0x1F, 0x2F, 0x5F
_RSH_K, _LSH_K, _ARSH_K, _AND_K = 0x77, 0x67, 0xC7, 0x57


def program(pacer: Pacer, map_fd: int) -> bytes:
    """The instructions; ``map_fd`` names the map in the process that loads them."""
    bins, width = len(pacer.delays_ns) - 1, (1 << pacer.shift) - 1
    return b"".join(
        (
            _op(_MOV, _R6, _R1),
            _op(_CALL, immediate=_KTIME_GET_NS),
            _op(_MOV, _R7, _R0),
            _op(_MOV, _R1, _R7),
            _op(_RSH_K, _R1, immediate=pacer.shift),
            _op(_AND_K, _R1, immediate=bins),
            _op(_LSH_K, _R1, immediate=2),
            _wide(_R2, map_fd, 0, _PSEUDO_MAP_VALUE),
            _op(_ADD, _R2, _R1),
            _op(_LDXW, _R3, _R2),
            _op(_LDXW, _R4, _R2, offset=4),
            _op(_MOV, _R5, _R7),
            _wide(_R1, width & 0xFFFFFFFF, width >> 32, 0),
            _op(_AND, _R5, _R1),
            _op(_SUB, _R4, _R3),
            _op(_MUL, _R4, _R5),
            _op(_ARSH_K, _R4, immediate=pacer.shift),
            _op(_ADD, _R3, _R4),
            _op(_ADD, _R7, _R3),
            _op(_STXDW, _R6, _R7, offset=_TSTAMP_OFFSET),
            _op(_MOV_K, _R0, immediate=_CONTINUE),
            _op(_EXIT),
        )
    )


def tag(pacer: Pacer) -> bytes:
    """What the kernel calls the program: SHA-1 over the instructions without the map's fd."""
    return hashlib.sha1(program(pacer, 0), usedforsecurity=False).digest()[:8]


def map_value(pacer: Pacer) -> bytes:
    """The content of the array map."""
    return struct.pack(f"={len(pacer.delays_ns) + 1}I", *pacer.delays_ns, pacer.delays_ns[0])


def _op(
    code: int, destination: int = 0, source: int = 0, offset: int = 0, immediate: int = 0
) -> bytes:
    return _INSTRUCTION.pack(code, source << 4 | destination, offset, immediate)


def _wide(destination: int, low: int, high: int, source: int) -> bytes:
    """A 64-bit load in two slots."""
    first = struct.pack("=BBhI", _LDDW, source << 4 | destination, 0, low)
    return first + struct.pack("=BBhI", 0, 0, 0, high)
