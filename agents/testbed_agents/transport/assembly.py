"""Parts on their way to become whole transfers: nothing is handed on before all are verified.

::

    begin ─▶ [ parts of (request, epoch) ] ──complete, the last──▶ whole transfer
                     └──fail: one part──▶ all others fail, none is handed on

Pure; ``HolderT`` is whatever a part arrives by.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from testbed_agents.transport.fault import Fault, FrameError
from testbed_agents.transport.part import Part
from testbed_agents.transport.transfer import IncomingTransfer, supersedes

HolderT = TypeVar("HolderT")
Key = tuple[int, int]
"""Request and epoch."""


@dataclass(frozen=True, slots=True)
class Whole(Generic[HolderT]):
    """A transfer of which every part was verified, and by what the parts came, in order."""

    transfer: IncomingTransfer
    holders: tuple[HolderT, ...]


@dataclass(slots=True)
class _Pending(Generic[HolderT]):
    of: int
    blocks: int
    wire_bytes: int
    holders: dict[int, HolderT] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)
    arrived: dict[int, tuple[Part, IncomingTransfer]] = field(default_factory=dict)


class Assemblies(Generic[HolderT]):
    """All transfers of which some parts have begun and not all are complete."""

    def __init__(self) -> None:
        self._pending: dict[Key, _Pending[HolderT]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def begin(self, key: Key, part: Part, holder: HolderT) -> bool:
        """Part ``part`` begins; returns whether it is the first of its transfer.

        Raises FrameError where the parts do not say the same of the whole.
        """
        known = self._pending.get(key)
        if known is None:
            known = self._pending[key] = _Pending(part.of, part.blocks, part.wire_bytes)
        agreed = (known.of, known.blocks, known.wire_bytes)
        if agreed != (part.of, part.blocks, part.wire_bytes) or part.number in known.begun:
            raise FrameError(Fault.OUT_OF_ORDER, f"request {key[0]}", f"{part} disagrees")
        known.holders[part.number] = holder
        known.begun.add(part.number)
        return len(known.begun) == 1

    def complete(self, key: Key, part: Part, transfer: IncomingTransfer) -> Whole[HolderT] | None:
        """Every byte of a part has arrived; returns the whole when it was the last.

        Raises FrameError where the parts do not make the whole.
        """
        known = self._pending[key]
        known.arrived[part.number] = part, transfer
        if len(known.arrived) < known.of:
            return None
        parts = [known.arrived[number] for number in range(known.of)]
        blocks = tuple(block for _, one in parts for block in one.blocks)
        first, size = 0, 0
        for one, piece in parts:
            if one.first != first:
                raise FrameError(Fault.OUT_OF_ORDER, f"request {key[0]}", f"{one} begins amiss")
            first += len(piece.blocks)
            size += piece.wire_bytes
        if (first, size) != (known.blocks, known.wire_bytes):
            raise FrameError(Fault.TRUNCATED, f"request {key[0]}", "its parts do not add up")
        del self._pending[key]
        lead = parts[0][1]
        whole = IncomingTransfer(
            *key, blocks, size, lead.peer, lead.connection,
            sum(piece.unequal for _, piece in parts), sum(piece.missing for _, piece in parts),
        )  # fmt: skip
        return Whole(whole, tuple([known.holders[number] for number in sorted(known.holders)]))

    def let_go(self, key: Key, part: Part) -> None:
        """What a part came by is free for others; the part itself stays."""
        self._pending[key].holders.pop(part.number, None)

    def fail(self, key: Key) -> tuple[HolderT, ...]:
        """Give a transfer up; returns by what its parts came. Once is enough."""
        known = self._pending.pop(key, None)
        return () if known is None else tuple(known.holders.values())

    def older(self, request: int, epoch: int) -> tuple[Key, ...]:
        """Transfers of ``request`` that an attempt of ``epoch`` takes the place of."""
        return tuple(
            key for key in self._pending if key[0] == request and supersedes(epoch, key[1])
        )
