"""What the next step does, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feed:
    """``tokens`` ids of a sequence from ``start`` on; ``context`` = ``start`` tokens have KV."""

    identity: int
    start: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Preempted:
    """A sequence that lost its place: ``tokens`` tokens must be computed again."""

    identity: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step: who is fed what, and whose KV is dropped before it."""

    feeds: tuple[Feed, ...]
    preempted: tuple[Preempted, ...]
