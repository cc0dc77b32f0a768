"""TCA_OPTIONS of fq, used here only to hold packets until their departure time.

One flow for all packets (orphan mask 0) keeps them in order; no pacing by socket, no
timer slack. Source: include/uapi/linux/pkt_sched.h, net/sched/sch_fq.c.
"""

from __future__ import annotations

import struct

from testbed.errors import FidelityError
from testbed.shaping.attribute import table, u32
from testbed.shaping.qdisc import Fq

A_LIMIT, A_FLOW_LIMIT, A_RATE_ENABLE, A_ORPHAN_MASK, A_TIMER_SLACK = 1, 2, 5, 10, 13


def encode_fq(spec: Fq) -> bytes:
    """The payload of TCA_OPTIONS."""
    return b"".join(
        (
            u32(A_LIMIT, spec.limit),
            u32(A_FLOW_LIMIT, spec.limit),
            u32(A_RATE_ENABLE, 0),
            u32(A_ORPHAN_MASK, spec.orphan_mask),
            u32(A_TIMER_SLACK, spec.timer_slack_ns),
        )
    )


def decode_fq(options: bytes) -> Fq:
    """What the kernel holds; limits that differ from each other are not ours."""
    found = {kind: struct.unpack("=I", data)[0] for kind, data in _words(options)}
    wanted = (A_LIMIT, A_FLOW_LIMIT, A_RATE_ENABLE, A_ORPHAN_MASK, A_TIMER_SLACK)
    if any(kind not in found for kind in wanted):
        raise FidelityError("decode fq", "TCA_OPTIONS", "a field is missing")
    return Fq(
        limit=min(found[A_LIMIT], found[A_FLOW_LIMIT]),
        orphan_mask=found[A_ORPHAN_MASK],
        timer_slack_ns=found[A_TIMER_SLACK],
        paces_sockets=found[A_RATE_ENABLE] != 0,
    )


def _words(options: bytes) -> list[tuple[int, bytes]]:
    return [(kind, data) for kind, data in table(options).items() if len(data) == 4]
