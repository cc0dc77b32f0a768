"""The words of an explanation: what can be waited for, and what can be behind it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from testbed.contract.event import Kind


class Wait(StrEnum):
    """What the request waited for."""

    ROUTE = "route"
    """The router's decision, from the client's question on."""
    ASSIGN = "assign"
    """The router's word at P."""
    PREFILL_QUEUE = "prefill-queue"
    PREFILL = "prefill"
    MATCH = "match"
    """The receiver's word what it holds, at P."""
    POOL = "pool"
    TRANSFER = "transfer"
    ADMISSION = "admission"
    """Room in the device memory of RLD or MD."""
    LOAD = "load"
    """The copy onto the device, and the step before."""
    HANDOFF = "handoff"
    DECODE = "decode"
    """A step of the source; how its token travelled is part of it."""
    DELIVERY = "delivery"
    """A token that was decoded in time, on its way to the client."""


class Cause(StrEnum):
    """What explains a wait."""

    FAULT = "fault"
    LOSS = "loss"
    """Packets dropped by a queue or lost by the link itself, and sent again."""
    CONGESTION = "congestion"
    """A link that others filled as well."""
    LINE = "line"
    """The bytes take that long at the rate of the slowest link."""
    WINDOW = "window"
    """The congestion window was smaller than the link."""
    POOL = "pool"
    """All connections were in use, by transfers that nothing else delayed."""
    QUEUE = "prefill-queue"
    PREFILL = "prefill"
    MEMORY = "memory"
    DEVICE = "device"
    """A copy onto the device."""
    DECODE = "decode"
    HANDOFF = "handoff"
    MESSAGE = "message"
    """A control message under way: no longer than the links take."""
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Waited:
    """One wait of a request, nanoseconds since the barrier. ``peer`` is the other end, if any."""

    kind: Wait
    begin: int
    end: int
    node: str
    peer: str = ""


MILESTONES: tuple[tuple[Kind, Wait], ...] = (
    (Kind.REQUEST_ROUTED, Wait.ROUTE),
    (Kind.PREFILL_QUEUED, Wait.ASSIGN),
    (Kind.PREFILL_START, Wait.PREFILL_QUEUE),
    (Kind.PREFILL_END, Wait.PREFILL),
    (Kind.POOL_QUEUED, Wait.MATCH),
    (Kind.POOL_ACQUIRED, Wait.POOL),
    (Kind.KV_VERIFIED, Wait.TRANSFER),
    (Kind.SEQUENCE_ADMITTED, Wait.ADMISSION),
    (Kind.HANDOFF_START, Wait.LOAD),
    (Kind.DECODE_START, Wait.LOAD),
    (Kind.HANDOFF_END, Wait.HANDOFF),
)
"""On the way to a first token of RLD or MD, in this order; each ends the wait beside it."""

PLAIN: dict[Wait, Cause] = {
    Wait.PREFILL_QUEUE: Cause.QUEUE,
    Wait.PREFILL: Cause.PREFILL,
    Wait.POOL: Cause.POOL,
    Wait.ADMISSION: Cause.MEMORY,
    Wait.LOAD: Cause.DEVICE,
    Wait.HANDOFF: Cause.HANDOFF,
}
"""What explains a wait that nothing from outside does: the wait itself."""
