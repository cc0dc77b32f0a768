"""TCA_OPTIONS of tbf: struct tc_tbf_qopt, the burst in bytes and the 64-bit rate.

Source: include/uapi/linux/pkt_sched.h, net/sched/sch_tbf.c. The kernel keeps the
burst as a time and dumps it in ticks of 64 ns, so a burst comes back rounded down
to a tick; compare with ``as_dumped``.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from testbed.errors import FidelityError
from testbed.shaping import ratespec
from testbed.shaping.attribute import attribute, table, u32, u64
from testbed.shaping.qdisc import U32_MAX, Tbf

A_PARMS, A_RATE64, A_BURST = 1, 4, 6
TAIL = struct.Struct("=3I")
PARMS_SIZE = 2 * ratespec.LAYOUT.size + TAIL.size


def encode_tbf(spec: Tbf) -> bytes:
    """The payload of TCA_OPTIONS."""
    ticks = ratespec.Reciprocal.of(spec.rate).time_ns(spec.burst) // ratespec.TICK_NS
    parms = ratespec.pack(spec.rate) + bytes(ratespec.LAYOUT.size)
    parts = [attribute(A_PARMS, parms + TAIL.pack(spec.limit, ticks, 0)), u32(A_BURST, spec.burst)]
    if spec.rate > U32_MAX:
        parts.append(u64(A_RATE64, spec.rate))
    return b"".join(parts)


def decode_tbf(options: bytes) -> Tbf:
    """What the kernel holds; ``burst`` is what its ticks stand for, rounded down to bytes."""
    found = table(options)
    parms = found.get(A_PARMS, b"")
    if len(parms) < PARMS_SIZE:
        raise FidelityError("decode tbf", "TCA_TBF_PARMS", f"only {len(parms)} bytes")
    rate = ratespec.unpack(parms)
    if A_RATE64 in found:
        (rate,) = struct.unpack("=Q", found[A_RATE64])
    limit, ticks, _ = TAIL.unpack_from(parms, 2 * ratespec.LAYOUT.size)
    return Tbf(rate=rate, burst=_bytes(ticks, rate), limit=limit)


def as_dumped(spec: Tbf) -> Tbf:
    """``spec`` as the kernel will report it."""
    ticks = ratespec.Reciprocal.of(spec.rate).time_ns(spec.burst) // ratespec.TICK_NS
    return replace(spec, burst=_bytes(ticks, spec.rate))


def _bytes(ticks: int, rate: int) -> int:
    return ticks * ratespec.TICK_NS * rate // ratespec.NS
