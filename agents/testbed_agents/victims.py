"""The seams between an agent's faults and what they act on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Receiver(Protocol):
    """What can be made to read nothing, or to accept nobody."""

    def hold(self, held: bool) -> None:
        """Reads nothing while ``held``."""
        ...

    def refrain(self, backlog: int | None) -> None:
        """Accepts nothing, and lets ``backlog`` + 1 wait; None goes on accepting."""
        ...


class Spoilt(Protocol):
    """The part of a pool that takes its afflictions."""

    def leak(self, each: int | None, hit: Callable[[int], None]) -> None:
        """Every ``each``-th loan is never given back; None stops that."""
        ...

    def skip(self, chunk: int | None, which: int | None, hit: Callable[[int], None]) -> None:
        """A chunk of the ``which``-th transfer from now on is never sent."""
        ...

    def outdate(self, which: int | None, hit: Callable[[int], None]) -> None:
        """The ``which``-th transfer from now on has other blocks than its digests say."""
        ...

    def spare(self, kind: str) -> None:
        """``skip-chunk`` or ``stale`` ends."""
        ...


class Watched(Protocol):
    """The part of a pool that tells how far its transfers are."""

    def watch(self, transfer: int, progress: float, reached: Callable[[int], None]) -> None:
        """Be told the request of the ``transfer``-th, from 1, when ``progress`` of it is sent."""
        ...


class Bounded(Protocol):
    """The part of a pool that takes connections and source ports away."""

    def shrink(self, fewer: int) -> None:
        """So many connections fewer."""
        ...

    def keep_ports(self, left: int | None) -> None:
        """Only the first ``left`` source ports are of use; None is all."""
        ...


class Sender(Protocol):
    """A pool to one receiver, which can be made worse."""

    @property
    def affliction(self) -> Spoilt:
        """What spoils its loans and transfers."""
        ...

    @property
    def progress(self) -> Watched:
        """How far its transfers are."""
        ...

    @property
    def withheld(self) -> Bounded:
        """What it may not use."""
        ...

    def drop(self, connection: int, clean: bool) -> bool:
        """Lose one connection; False where it is not open."""
        ...


class Hearing(Protocol):
    """What can be made to hear control messages late."""

    def begin(self, delay_s: float | None) -> None:
        """So much later; None when it ends."""
        ...

    def end(self) -> None:
        """What was held back is heard."""
        ...
