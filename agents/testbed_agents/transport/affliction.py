"""What one pool suffers on purpose: loans that leak, transfers that are spoilt. No sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from testbed_agents.transport.frame import Bytes
from testbed_agents.transport.pieces import Parcel
from testbed_agents.transport.transfer import OutgoingTransfer

Hit: TypeAlias = Callable[[int], None]
"""Told the request of each transfer that a fault hit."""


@dataclass(slots=True)
class _Counted:
    """A fault in force: how many it saw pass, and which of them it hits (None each)."""

    hit: Hit
    which: int | None
    seen: int = 0

    def strikes(self) -> bool:
        self.seen += 1
        return self.which is None or self.seen == self.which


class Affliction:
    """See the module. One of each kind at a time; nothing happens without one."""

    def __init__(self) -> None:
        self._leak: _Counted | None = None
        self._skip: tuple[_Counted, int | None] | None = None
        self._stale: _Counted | None = None
        self._before: Sequence[Bytes] = ()

    def leak(self, each: int | None, hit: Hit) -> None:
        """Every ``each``-th loan is never given back; None stops that."""
        self._leak = None if each is None else _Counted(hit, each)

    def skip(self, chunk: int | None, which: int | None, hit: Hit) -> None:
        """A chunk (None the last) of the ``which``-th transfer from now on is never sent."""
        self._skip = (_Counted(hit, which), chunk)

    def outdate(self, which: int | None, hit: Hit) -> None:
        """The ``which``-th transfer from now on has other blocks than its digests say."""
        self._stale = _Counted(hit, which)

    def spare(self, kind: str) -> None:
        """One of these kinds ends: ``skip-chunk`` or ``stale``."""
        if kind == "skip-chunk":
            self._skip = None
        else:
            self._stale = None

    def keeps(self, request: int) -> bool:
        """Whether this loan leaks."""
        leak = self._leak
        if leak is None or not leak.strikes():
            return False
        leak.seen = 0
        leak.hit(request)
        return True

    def spoil(self, transfer: OutgoingTransfer, parcels: Sequence[Parcel]) -> None:
        """A transfer is about to begin, in these parts."""
        if self._skip is not None:
            counted, chunk = self._skip
            if counted.strikes() and parcels[0].skip(chunk):
                counted.hit(transfer.request)
        if self._stale is not None:
            if self._stale.strikes() and transfer.blocks:
                first = 0
                for parcel in parcels:
                    parcel.replace(self._before[first : first + parcel.blocks])
                    first += parcel.blocks
                self._stale.hit(transfer.request)
            self._before = transfer.blocks
