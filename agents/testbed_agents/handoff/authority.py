"""Who may emit an output position: exactly one holder each, by epochs.

::

    position   0 … 41            42 … 99         100 …
    epoch      0 (RLD)           1 (MD)          2 (MD, after a repair)

An epoch holds every position from its start to where a newer epoch starts. A newer epoch
may start before an older one: then it takes over what the older one has not delivered,
and late emissions of the older one are fenced off. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed_agents.handoff.message import Peer


@dataclass(frozen=True, slots=True)
class Epoch:
    """One reign over the positions from ``since`` on."""

    number: int
    since: int
    holder: Peer


class Authority:
    """The epochs of one answer, as far as they are known here."""

    def __init__(self, first: Peer) -> None:
        self._epochs = [Epoch(0, 0, first)]

    @property
    def newest(self) -> Epoch:
        """The latest reign."""
        return self._epochs[-1]

    def begin(self, number: int, since: int, holder: Peer) -> bool:
        """Learns of an epoch; False when it was known.

        Raises:
            ValueError: it contradicts what is known, or is older than the newest.
        """
        if number < 0 or since < 0:
            raise ValueError("epochs and positions count from 0")
        for epoch in self._epochs:
            if epoch.number == number:
                if epoch != Epoch(number, since, holder):
                    raise ValueError(f"epoch {number} began twice, differently")
                return False
        if number < self.newest.number:
            raise ValueError(f"epoch {number} comes after {self.newest.number}")
        self._epochs.append(Epoch(number, since, holder))
        return True

    def knows(self, number: int) -> bool:
        """Whether the epoch has begun here."""
        return any(epoch.number == number for epoch in self._epochs)

    def holder_of(self, position: int) -> Epoch:
        """The one epoch that holds ``position``: the newest that starts at or before it."""
        for epoch in reversed(self._epochs):
            if epoch.since <= position:
                return epoch
        raise ValueError(f"no epoch holds position {position}")

    def may_emit(self, number: int, position: int) -> bool:
        """Whether epoch ``number`` holds ``position``; False fences a late emission off."""
        return position >= 0 and self.holder_of(position).number == number
