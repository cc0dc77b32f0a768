"""Control messages: what they are and how they travel.

On the wire a message is msgpack ``[protocol, kind, sender, field, …]`` of at most
``MESSAGE_MAX`` bytes. Decoding checks version, kind, arity, types and ranges; anything
else is a ProtocolError, because a peer that sends nonsense must not be obeyed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, fields
from typing import TypeAlias, cast

import msgpack

from testbed.contract.agent import PROTOCOL
from testbed.errors import ProtocolError
from testbed_agents.control.plane import (
    Ask,
    Assign,
    Back,
    Found,
    HeldUp,
    Lost,
    Matched,
    Note,
    Orphaned,
    Prepare,
    Relay,
    Seek,
    Settle,
    Settled,
)
from testbed_agents.handoff.message import (
    Cancel,
    Emission,
    Ending,
    Evicted,
    Failure,
    FirstToken,
    Refused,
    Resend,
    Takeover,
    TokenIds,
)

MESSAGE_MAX = 1 << 20
"""Largest control message in bytes."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Client to prefill: serve this request (shape as in contract.agent.Request)."""

    req: int
    input_tokens: int
    hit_tokens: int
    output_tokens: int
    blocks: int
    wire_bytes: int
    decode: str
    client: str


@dataclass(frozen=True, slots=True)
class Announce:
    """Prefill to decode: this request's blocks are coming; decode it for ``client``."""

    req: int
    input_tokens: int
    hit_tokens: int
    output_tokens: int
    blocks: int
    client: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Decode to client: one token each of several requests, at the given output positions."""

    reqs: list[int]
    positions: list[int]
    tokens: list[int]
    last: list[int]
    """1 where the token ends its request's answer."""


@dataclass(frozen=True, slots=True)
class Failed:
    """To the client: the request will not be answered."""

    req: int
    reason: str


Message: TypeAlias = (
    Submit | Announce | Tokens | Failed
    | Ask | Assign | Prepare | Relay | Matched | Note
    | TokenIds | Takeover | Evicted | Emission | Resend | Refused | Cancel | Failure
    | Lost | Orphaned | Settle | Settled
    | FirstToken
    | Seek | Back | Found | HeldUp
)  # fmt: skip

_KINDS: tuple[type[Message], ...] = (
    Submit, Announce, Tokens, Failed,
    Ask, Assign, Prepare, Relay, Matched, Note,
    TokenIds, Takeover, Evicted, Emission, Resend, Refused, Cancel, Failure,
    Lost, Orphaned, Settle, Settled,
    FirstToken,
    Seek, Back, Found, HeldUp,
)  # fmt: skip
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}


def encode(sender: str, message: Message) -> bytes:
    """The message as bytes; raises ProtocolError when it is too large."""
    data = cast(
        "bytes", msgpack.packb([PROTOCOL, _NUMBERS[type(message)], sender, *astuple(message)])
    )
    if len(data) > MESSAGE_MAX:
        raise _fault(sender, f"message of {len(data)} bytes exceeds {MESSAGE_MAX}")
    return data


def decode(data: bytes) -> tuple[str, Message]:
    """(sender, message); raises ProtocolError on anything that ``encode`` cannot have made."""
    try:
        parts = msgpack.unpackb(data, raw=False, max_array_len=100_000)
    except Exception as error:
        raise _fault("unknown sender", f"not msgpack: {error}") from error
    if not isinstance(parts, list) or len(parts) < 3:
        raise _fault("unknown sender", "not a message")
    protocol, number, sender, *values = parts
    if not isinstance(sender, str) or len(sender) > 64:
        raise _fault("unknown sender", "no sender name")
    if protocol != PROTOCOL:
        raise _fault(sender, f"protocol {protocol!r}, this agent speaks {PROTOCOL}")
    if type(number) is not int or not 0 <= number < len(_KINDS):
        raise _fault(sender, f"unknown kind {number!r}")
    kind = _KINDS[number]
    declared = fields(kind)
    if len(values) != len(declared):
        raise _fault(sender, f"{kind.__name__} has {len(values)} fields, wants {len(declared)}")
    for index, field in enumerate(declared):
        declaration = str(field.type)
        if not _fits(declaration, values[index]):
            raise _fault(sender, f"{kind.__name__}.{field.name} is not {field.type}")
        if declaration in _MADE:
            values[index] = _MADE[declaration](values[index])
    return sender, kind(*values)


_MADE: dict[str, Callable[[Iterable[int] | str], object]] = {
    "tuple[int, ...]": tuple,
    "Ending": lambda value: Ending(str(value)),
}
"""Types that msgpack does not carry as they are."""
_ENDINGS = frozenset(Ending)


def _fits(declared: str, value: object) -> bool:
    match declared:
        case "int":
            return type(value) is int and 0 <= value < 1 << 62
        case "str":
            return isinstance(value, str) and len(value) <= 512
        case "bool":
            return type(value) is bool
        case "Ending":
            return isinstance(value, str) and value in _ENDINGS
        case "list[int]" | "tuple[int, ...]":
            return isinstance(value, list) and all(
                type(item) is int and 0 <= item < 1 << 62 for item in value
            )
    return False


def _fault(sender: str, cause: str) -> ProtocolError:
    return ProtocolError("understand a control message", sender, cause)
