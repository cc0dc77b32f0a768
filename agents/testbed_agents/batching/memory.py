"""Who may hold KV in device memory: first come, first served, by bytes. Pure.

::

    submit ─▶ [ waiting, oldest first ] ─ admit, when it fits ─▶ [ held ] ─ leave ─▶ gone

A sequence is admitted with all the room that it will ever need, so that it never has to be
preempted; nobody overtakes, so that nobody starves.
"""

from __future__ import annotations

from collections import OrderedDict


class KvMemory:
    """The KV memory of one decode instance.

    Args:
        kv_bytes: bytes that may be held together; 0 is no limit.
    """

    def __init__(self, kv_bytes: int) -> None:
        if kv_bytes < 0:
            raise ValueError("memory cannot be less than none")
        self._kv_bytes = kv_bytes
        self._waiting: OrderedDict[int, int] = OrderedDict()
        self._held: dict[int, int] = {}

    @property
    def used(self) -> int:
        """Bytes held now."""
        return sum(self._held.values())

    @property
    def waiting(self) -> int:
        """Sequences that wait."""
        return len(self._waiting)

    def fits(self, size: int) -> bool:
        """Whether ``size`` bytes could ever be held: otherwise the sequence must be refused."""
        return not self._kv_bytes or size <= self._kv_bytes

    def submit(self, identity: int, size: int) -> None:
        """Let a sequence wait for ``size`` bytes.

        Raises:
            ValueError: it is here already, has no size, or can never fit.
        """
        if identity in self._waiting or identity in self._held:
            raise ValueError(f"sequence {identity} is here already")
        if size < 0 or not self.fits(size):
            raise ValueError(f"sequence {identity} cannot hold {size} of {self._kv_bytes} bytes")
        self._waiting[identity] = size

    def admit(self) -> int | None:
        """The sequence that holds its bytes from now on: the oldest, or None while it must wait."""
        for identity, size in self._waiting.items():
            if self._kv_bytes and self.used + size > self._kv_bytes:
                return None
            del self._waiting[identity]
            self._held[identity] = size
            return identity
        return None

    def leave(self, identity: int) -> bool:
        """Give everything back, from wherever it is; False when it is not here."""
        waited = self._waiting.pop(identity, None) is not None
        return self._held.pop(identity, None) is not None or waited
