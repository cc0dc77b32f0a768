"""What a request waited for at each moment of a delay: the milestones of the record, backward.

::

    sent ─route─ routed ─assign─ queued at P ─prefill queue─ start ─prefill─ end ─match─ queued
      ─pool─ acquired ─transfer─ verified ─admission─ admitted ─load─ on the device ─handoff─ token

From the late token one goes back to the last event that it needed, from that one to the last that
*it* needed, and so on: what happened beside this path (RLD decodes meanwhile) held nothing up.
"""

from __future__ import annotations

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.attribution.cause import MILESTONES, Wait, Waited
from testbed.metrics.attribution.past import Mark, Past

_BY_RECEIVER = frozenset({Kind.POOL_QUEUED, Kind.POOL_ACQUIRED})
_AT_SOURCE = frozenset(
    {
        Kind.KV_VERIFIED, Kind.SEQUENCE_ADMITTED, Kind.HANDOFF_START, Kind.DECODE_START,
        Kind.HANDOFF_END,
    }
)  # fmt: skip
_UP_TO_PREFILL = 4
"""So many milestones precede a token that P emits itself."""


def on_the_way(
    past: Past, req: int, source: str, role: Role | None, client: str, until: int
) -> list[Waited]:
    """All waits from the question to the first token of ``source``, which came at ``until``."""
    path = MILESTONES if role is not Role.PREFILL else MILESTONES[:_UP_TO_PREFILL]
    marks: list[tuple[Mark, Wait]] = []
    limit = until
    for kind, wait in reversed(path):
        node = source if kind in _AT_SOURCE else ""
        peer = source if kind in _BY_RECEIVER else ""
        mark = past.last(kind, req, limit, node, peer)
        if mark is not None:
            marks.append((mark, wait))
            limit = mark.t
    sent = past.last(Kind.REQUEST_SENT, req, limit)
    began = limit if sent is None else sent.t
    marks.reverse()
    waits: list[Waited] = []
    prefill = next((mark.node for mark, wait in marks if wait is Wait.PREFILL), "")
    router = next((mark.node for mark, wait in marks if wait is Wait.ROUTE), "")
    for mark, wait in marks:
        node, peer = _place(wait, mark, source, client, prefill, router)
        waits.append(Waited(wait, began, mark.t, node, peer))
        began = mark.t
    last = Wait.DELIVERY if marks and marks[-1][1] in (Wait.HANDOFF, Wait.PREFILL) else Wait.DECODE
    waits.append(Waited(last, began, until, source, client))
    return [one for one in waits if one.begin < one.end]


def in_stream(
    past: Past, req: int, source: str, client: str, begin: int, end: int, late: bool
) -> list[Waited]:
    """Between two tokens of one source. ``late``: more tokens came with the second."""
    waits: list[Waited] = []
    dropped = past.last(Kind.SEQUENCE_PREEMPTED, req, end, source)
    if dropped is not None and dropped.t >= begin:
        back = past.last(Kind.SEQUENCE_ADMITTED, req, end, source)
        until = back.t if back is not None and back.t > dropped.t else end
        waits.append(Waited(Wait.ADMISSION, dropped.t, until, source))
        waits.append(Waited(Wait.DECODE, begin, dropped.t, source, client))
        waits.append(Waited(Wait.DECODE, until, end, source, client))
    else:
        waits.append(Waited(Wait.DELIVERY if late else Wait.DECODE, begin, end, source, client))
    return [one for one in waits if one.begin < one.end]


def clipped(waits: list[Waited], begin: int, end: int) -> list[Waited]:
    """What of them lies between two moments."""
    return [
        Waited(one.kind, max(one.begin, begin), min(one.end, end), one.node, one.peer)
        for one in waits
        if max(one.begin, begin) < min(one.end, end)
    ]


def _place(
    wait: Wait, mark: Mark, source: str, client: str, prefill: str, router: str
) -> tuple[str, str]:
    """Where something is waited for, and who is at the other end."""
    match wait:
        case Wait.ROUTE:
            return mark.node, client
        case Wait.ASSIGN:
            return mark.node, router or client
        case Wait.MATCH:
            return mark.node, source
        case Wait.POOL:
            return mark.node, source
        case Wait.TRANSFER:
            return prefill, source
        case Wait.HANDOFF:
            return source, client
        case _:
            return mark.node, ""
