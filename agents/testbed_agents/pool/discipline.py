"""The seam between the gate and the rule that it waits for, and the words that they exchange."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from testbed_agents.pool.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Claim:
    """What an order may go by: bytes to send, and the time by which they are due, if any.

    Only the order of the times matters; without one the transfer counts from when it asks.
    """

    size_bytes: int = 0
    due_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """Connection ``connection`` belongs to ``ticket`` from now on.

    ``opens``: it must be opened first. Where that fails its holder retires it. ``lent``: it
    belongs to another, who waits until it is back.
    """

    ticket: int
    connection: int
    wait_ns: int
    opens: bool = False
    lent: bool = False


@dataclass(frozen=True, slots=True)
class Queued:
    """``ticket`` waits; it is refused at ``deadline_ns`` unless granted before."""

    ticket: int
    deadline_ns: int


class Ending(StrEnum):
    """Why a connection is closed: reasons of ``connection.closed``."""

    AFTER_USE = "after-use"
    IDLE = "idle"
    """Nobody wanted it for the idle time-out."""
    BROKEN = "broken"
    """Its transfer failed, so that its stream cannot be trusted."""
    LOST = "lost"
    """The receiver closed it, or it broke, while it was idle."""
    CLOSED = "closed"
    """The pool is closed."""
    SHRUNK = "shrunk"
    """The pool may have fewer connections than it had."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The rule has given ``connection`` up: it must be closed, and was idle when it was."""

    connection: int
    reason: Ending


class Discipline(Protocol):
    """A rule of a pool: no I/O, no clock; time is an argument and never runs backwards.

    Misuse raises ValueError: it is a mistake of the caller, never of the network.
    """

    @property
    def standing(self) -> int:
        """How many connections, from 0 on, are opened at the start and replaced when they break;
        0 where each is opened by the grant that says so."""
        ...

    @property
    def busy(self) -> int:
        """Connections that carry a transfer, or are opened for one."""
        ...

    @property
    def idle(self) -> int:
        """Open connections that nobody uses."""
        ...

    @property
    def waiting(self) -> int:
        """Transfers that wait for a connection."""
        ...

    @property
    def broken(self) -> int:
        """Connections that are being replaced."""
        ...

    @property
    def next_deadline_ns(self) -> int | None:
        """When ``expire`` has something to do next; None when there is nothing."""
        ...

    def is_idle(self, connection: int) -> bool:
        """Whether it is open and nobody uses it."""
        ...

    def request(self, now_ns: int, claim: Claim = ...) -> Grant | Queued | Refusal:
        """Ask for a connection."""
        ...

    def spare(self, now_ns: int) -> Grant | None:
        """One more connection for who has one already; None where there is none for nothing, or
        somebody waits."""
        ...

    def lend(self, connection: int, claim: Claim, now_ns: int) -> Grant | None:
        """Lend a busy connection to whose turn it is, if that one comes before ``claim``, what its
        holder still has to send. It stays busy, and is nobody's to release meanwhile."""
        ...

    def release(self, connection: int, now_ns: int) -> Grant | None:
        """Give a healthy connection back; whose turn it is gets one."""
        ...

    def retire(self, connection: int, now_ns: int, last: bool = False) -> Grant | None:
        """Take a connection out that broke or could not be opened; ``last``: where others can be
        opened instead, they are first."""
        ...

    def restore(self, connection: int, now_ns: int) -> Grant | None:
        """A standing connection that was broken is open again."""
        ...

    def limit(self, fewer: int, ports: int | None, now_ns: int) -> tuple[Grant, ...]:
        """At most ``fewer`` connections fewer than its size from now on, and only those whose
        numbers are below ``ports``; (0, None) is no limit. Only where none stand. Returns what
        those get who waited and need not any more."""
        ...

    def cancel(self, ticket: int, now_ns: int) -> bool:
        """Forget a waiting transfer; False when it does not wait (any more)."""
        ...

    def expire(self, now_ns: int) -> tuple[int, ...]:
        """Drop and return the tickets that have waited their time, oldest first."""
        ...

    def close(self, now_ns: int) -> tuple[int, ...]:
        """Refuse everything from now on; returns the tickets that waited."""
        ...

    def closings(self) -> tuple[Closing, ...]:
        """Connections given up since the last call, which must be closed now."""
        ...
