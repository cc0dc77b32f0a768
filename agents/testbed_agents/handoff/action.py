"""What a state machine asks its agent to do, in this order. The machines do nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from testbed_agents.handoff.message import Message, Peer


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message."""

    to: Peer
    message: Message


@dataclass(frozen=True, slots=True)
class Publish:
    """MD: let the prompt's verified blocks enter the radix cache."""


@dataclass(frozen=True, slots=True)
class Release:
    """Return everything that this side holds for the request. Asked for exactly once."""


@dataclass(frozen=True, slots=True)
class SendIncrement:
    """RLD: send the ``rows`` KV rows behind the prompt's (its last token is the first of
    them) to MD through the pool. A step that was discarded may have left one row more."""

    rows: int


Action: TypeAlias = Send | Publish | Release | SendIncrement
Actions: TypeAlias = tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Feed:
    """One (extend-)decode step: feed these tokens behind the KV so far.

    The choice after the last of them is the token of output position ``position``.
    """

    tokens: tuple[int, ...]
    position: int
