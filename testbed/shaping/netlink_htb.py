"""TCA_OPTIONS of htb's root and of its classes, with explicit bursts and 64-bit rates.

Source: include/uapi/linux/pkt_sched.h, net/sched/sch_htb.c. A link layer other than
"unaware" makes the kernel ignore rate tables, so none are sent.
"""

from __future__ import annotations

import struct

from testbed.errors import FidelityError
from testbed.shaping import ratespec
from testbed.shaping.attribute import attribute, table, u32, u64
from testbed.shaping.qdisc import U32_MAX, Htb, HtbClass

A_PARMS, A_INIT, A_DIRECT_QLEN, A_RATE64, A_CEIL64 = 1, 2, 5, 6, 7
GLOB = struct.Struct("=5I")
TAIL = struct.Struct("=5I")
VERSION = 3
PARMS_SIZE = 2 * ratespec.LAYOUT.size + TAIL.size


def encode_htb(spec: Htb) -> bytes:
    """The payload of TCA_OPTIONS of the root qdisc."""
    glob = GLOB.pack(VERSION, spec.rate_to_quantum, spec.default_class, 0, 0)
    return attribute(A_INIT, glob) + u32(A_DIRECT_QLEN, spec.direct_queue)


def decode_htb(options: bytes) -> Htb:
    """What the kernel holds of the root qdisc."""
    found = table(options)
    if len(found.get(A_INIT, b"")) < GLOB.size or A_DIRECT_QLEN not in found:
        raise FidelityError("decode htb", "TCA_HTB_INIT", "missing or short")
    _, quantum, default, _, _ = GLOB.unpack_from(found[A_INIT])
    (direct,) = struct.unpack("=I", found[A_DIRECT_QLEN])
    return Htb(default_class=default, rate_to_quantum=quantum, direct_queue=direct)


def encode_htb_class(spec: HtbClass) -> bytes:
    """The payload of TCA_OPTIONS of a class."""
    parms = ratespec.pack(spec.rate) + ratespec.pack(spec.ceil)
    parms += TAIL.pack(
        spec.burst_ns // ratespec.TICK_NS,
        spec.ceil_burst_ns // ratespec.TICK_NS,
        spec.quantum,
        0,
        spec.priority,
    )
    parts = [attribute(A_PARMS, parms)]
    if spec.rate > U32_MAX:
        parts.append(u64(A_RATE64, spec.rate))
    if spec.ceil > U32_MAX:
        parts.append(u64(A_CEIL64, spec.ceil))
    return b"".join(parts)


def decode_htb_class(options: bytes) -> HtbClass:
    """What the kernel holds of a class; bursts are multiples of 64 ns."""
    found = table(options)
    parms = found.get(A_PARMS, b"")
    if len(parms) < PARMS_SIZE:
        raise FidelityError("decode htb class", "TCA_HTB_PARMS", f"only {len(parms)} bytes")
    rate = ratespec.unpack(parms)
    ceil = ratespec.unpack(parms, ratespec.LAYOUT.size)
    if A_RATE64 in found:
        (rate,) = struct.unpack("=Q", found[A_RATE64])
    if A_CEIL64 in found:
        (ceil,) = struct.unpack("=Q", found[A_CEIL64])
    burst, ceil_burst, quantum, _, priority = TAIL.unpack_from(parms, 2 * ratespec.LAYOUT.size)
    return HtbClass(
        rate=rate,
        ceil=ceil,
        burst_ns=burst * ratespec.TICK_NS,
        ceil_burst_ns=ceil_burst * ratespec.TICK_NS,
        quantum=quantum,
        priority=priority,
    )
