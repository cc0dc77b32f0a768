"""What RLD, MD and the client tell each other about one answer.

::

              TokenIds, Evicted                 Emission
        RLD ───────────────────▶ MD ─────────────────────▶ client
         ▲    Takeover, Refused  │ ▲        Resend           │
         └───────────────────────┘ └─────────────────────────┘
         └── Emission, Evicted, Failure ────────────────────▶
         P ── FirstToken (``first_token: prefill``) ─▶ RLD, MD, client

Messages of one sender arrive in order, perhaps more than once, perhaps never (a sender
that died). Positions count output tokens from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Peer(StrEnum):
    """Who takes part in a handoff."""

    PREFILL = "prefill"
    RELAY = "relay"
    MAIN = "main"
    CLIENT = "client"


class Ending(StrEnum):
    """Why RLD's part of an answer ends."""

    TAKEOVER = "takeover"
    CAP = "cap"
    LAST = "last"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class FirstToken:
    """P to all others: position 0, which P emits; decode holds what follows, as epoch 1 on."""

    req: int
    token: int
    relay: str
    """The RLD of the request, empty without one."""


@dataclass(frozen=True, slots=True)
class TokenIds:
    """RLD to MD: tokens from ``position`` on, as they were emitted; a few bytes each."""

    req: int
    position: int
    tokens: tuple[int, ...]
    last: bool
    """The last of them ends the answer."""
    load_percent: int
    """Load of RLD, for the dynamic choice of a mode."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """MD to RLD: emit nothing from ``position`` on; 0 means stop at once."""

    req: int
    position: int
    keep: bool = False
    """Keep the KV until the increment was sent (``incremental-kv``)."""


@dataclass(frozen=True, slots=True)
class Evicted:
    """RLD to MD and client: positions below ``end`` are or will be RLD's, no other ever.

    It may be sent before ``end`` is reached; then RLD keeps its word and goes on to there.
    """

    req: int
    end: int
    cause: Ending


@dataclass(frozen=True, slots=True)
class Emission:
    """To the client: tokens from ``position`` on, under an epoch that began at ``since``."""

    req: int
    epoch: int
    since: int
    position: int
    tokens: tuple[int, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class Resend:
    """Client to MD: RLD is gone; answer from ``position`` on."""

    req: int
    position: int


@dataclass(frozen=True, slots=True)
class Refused:
    """MD to RLD: MD will not decode this request."""

    req: int
    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Give the request up: the client left, or the sender knows that it must end."""

    req: int


@dataclass(frozen=True, slots=True)
class Failure:
    """To the client: there will be no (further) answer."""

    req: int
    reason: str


Message: TypeAlias = (
    FirstToken | TokenIds | Takeover | Evicted | Emission | Resend | Refused | Cancel | Failure
)
