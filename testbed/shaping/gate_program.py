"""The program of a gate: frames begin only outside of stops, one behind the other.

A frame that reaches the egress hook has just been serialised by the rate stage: it began
``length / rate`` ago. The gate lets it begin no earlier than the frame before it ended, and not
within a stop; if it thereby ends later than now, fq below netem holds it so much longer::

    begin = max(now - length / rate, end of the last that was held)
    within the first stop_ns of each_ns since the anchor ──▶ begin = end of the stop
    end = begin + length / rate

A queue that grew during a stop therefore leaves at the link's rate, as behind a switch that was
paused. An open gate is the same program without stops: what was held keeps its turn.
"""

from __future__ import annotations

import struct

from testbed.shaping.bpf_code import (
    R0,
    R1,
    R2,
    R3,
    R6,
    R7,
    R8,
    R9,
    U32,
    U64,
    Code,
    tag_of,
)
from testbed.shaping.qdisc import Gate

NAME = "gate"
STATE = struct.Struct("=QQQ")
"""CLOCK_MONOTONIC from which stops are counted, end of the last frame held, frames held."""
_KTIME_GET_NS = 5
_TSTAMP, _WIRE_LENGTH, _SEGMENTS = 152, 160, 164
"""Offsets in struct __sk_buff."""
_CONTINUE = -1
_NS = 10**9


def program(gate: Gate, map_fd: int) -> bytes:
    """The instructions; ``map_fd`` names the map in the process that loads them."""
    code = Code()
    code.alu_by("mov", R6, R1)
    code.call(_KTIME_GET_NS)
    code.alu_by("mov", R7, R0)
    code.wide(R8, 0, map_fd)
    code.alu("mov", R9, 0)
    if gate.rate:
        code.load(U32, R9, R6, _WIRE_LENGTH)
        code.wide(R1, _NS)
        code.alu_by("mul", R9, R1)
        code.wide(R1, gate.rate)
        code.alu_by("div", R9, R1)
    # R1: when it begins
    code.alu_by("mov", R1, R7)
    code.alu_by("sub", R1, R9)
    code.load(U64, R2, R8, 8)
    code.jump_if_by("ge", R1, R2, "begins")
    code.alu_by("mov", R1, R2)
    code.label("begins")
    if gate.stop_ns:
        code.load(U64, R2, R8, 0)
        code.jump_if_by("lt", R1, R2, "free")  # it began before the first stop
        code.alu_by("mov", R3, R1)
        code.alu_by("sub", R3, R2)
        code.wide(R2, gate.each_ns)
        code.alu_by("mod", R3, R2)
        code.wide(R2, gate.stop_ns)
        code.jump_if_by("ge", R3, R2, "free")
        code.alu_by("sub", R1, R3)
        code.alu_by("add", R1, R2)
        code.label("free")
    code.alu_by("add", R1, R9)
    code.jump_if_by("gt", R1, R7, "held")
    code.alu("mov", R1, 0)
    code.store(U64, R6, _TSTAMP, R1)
    code.exit(_CONTINUE)
    code.label("held")
    code.store(U64, R8, 8, R1)
    code.wide(R2, gate.delay_ns)
    code.alu_by("add", R1, R2)
    code.store(U64, R6, _TSTAMP, R1)
    code.load(U32, R1, R6, _SEGMENTS)
    code.jump_if("ne", R1, 0, "counted")
    code.alu("mov", R1, 1)
    code.label("counted")
    code.add_atomic(R8, 16, R1)
    code.exit(_CONTINUE)
    return code.assembled()


def tag(gate: Gate) -> bytes:
    """By which the kernel knows the program."""
    return tag_of(program(gate, 0))
