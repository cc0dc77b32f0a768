"""TCA_OPTIONS of a ``matchall`` filter with one action: police or redirect.

Source: include/uapi/linux/pkt_cls.h (tc_police, TCA_MATCHALL_*), tc_act/tc_mirred.h,
net/sched/act_police.c.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from testbed.errors import FidelityError
from testbed.shaping import ratespec
from testbed.shaping.attribute import attribute, nested, table, text, u32, u64
from testbed.shaping.qdisc import U32_MAX, Police

MATCHALL_ACT = 2
ACT_KIND, ACT_OPTIONS, ACT_STATS = 1, 2, 4
POLICE_TBF, POLICE_RATE, POLICE_RESULT, POLICE_RATE64 = 1, 2, 5, 8
MIRRED_PARMS = 2
TC_ACT_OK, TC_ACT_SHOT, TC_ACT_STOLEN = 0, 2, 4
EGRESS_REDIRECT = 1
GEN = struct.Struct("=IIiii")
"""index, capab, action, refcnt, bindcnt (tc_gen)."""
HEAD = struct.Struct("=IiIII")
"""index, action, limit, burst, mtu of tc_police."""
TAIL = struct.Struct("=iiI")
CELL_LOG = 8
"""Any legal value: the table below is demanded by the kernel but never read (Ethernet)."""


@dataclass(frozen=True, slots=True)
class RedirectTo:
    """A redirect by interface index, as the kernel keeps it."""

    index: int


def encode_police(spec: Police) -> bytes:
    """matchall + police: what does not conform is dropped, the rest goes on."""
    head = HEAD.pack(0, TC_ACT_SHOT, 0, spec.burst_ns // ratespec.TICK_NS, spec.largest)
    rate = ratespec.pack(spec.rate, CELL_LOG)
    parts = [
        attribute(POLICE_TBF, head + rate + bytes(ratespec.LAYOUT.size) + TAIL.pack(0, 0, 0)),
        attribute(POLICE_RATE, bytes(1024)),
        u32(POLICE_RESULT, TC_ACT_OK),
    ]
    if spec.rate > U32_MAX:
        parts.append(u64(POLICE_RATE64, spec.rate))
    return _matchall("police", b"".join(parts))


def encode_redirect(target: RedirectTo) -> bytes:
    """matchall + mirred egress redirect."""
    parms = GEN.pack(0, 0, TC_ACT_STOLEN, 0, 0) + struct.pack("=iI", EGRESS_REDIRECT, target.index)
    return _matchall("mirred", attribute(MIRRED_PARMS, parms))


def decode_matchall(options: bytes) -> Police | RedirectTo:
    """The single action of a matchall filter."""
    actions = table(table(options).get(MATCHALL_ACT, b""))
    if len(actions) != 1:
        raise FidelityError("decode matchall", "TCA_MATCHALL_ACT", f"{len(actions)} actions, not 1")
    action = table(next(iter(actions.values())))
    kind = action.get(ACT_KIND, b"").rstrip(b"\0").decode("ascii", "replace")
    inner = table(action.get(ACT_OPTIONS, b""))
    if kind == "police" and POLICE_TBF in inner:
        return _police(inner)
    if kind == "mirred" and MIRRED_PARMS in inner:
        return _redirect(inner[MIRRED_PARMS])
    raise FidelityError("decode matchall", kind or "action", "neither police nor mirred")


def _matchall(kind: str, options: bytes) -> bytes:
    action = text(ACT_KIND, kind) + attribute(ACT_OPTIONS, options)
    return nested(MATCHALL_ACT, nested(1, action))


def _police(inner: dict[int, bytes]) -> Police:
    data = inner[POLICE_TBF]
    _, action, _, burst, largest = HEAD.unpack_from(data)
    if action != TC_ACT_SHOT:
        raise FidelityError("decode police", "action", f"{action} is not a drop")
    rate = ratespec.unpack(data, HEAD.size)
    if POLICE_RATE64 in inner:
        (rate,) = struct.unpack("=Q", inner[POLICE_RATE64])
    return Police(rate=rate, burst_ns=burst * ratespec.TICK_NS, largest=largest)


def _redirect(data: bytes) -> RedirectTo:
    direction, index = struct.unpack_from("=iI", data, GEN.size)
    if direction != EGRESS_REDIRECT:
        raise FidelityError("decode mirred", "action", f"{direction} is not an egress redirect")
    return RedirectTo(index)
