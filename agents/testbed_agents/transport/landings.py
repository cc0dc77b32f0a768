"""Where the blocks of each transfer land: pages taken, written, freed, and who waits for some.

::

    begin ─▶ pages ─▶ write … ─▶ views ─▶ (handed on) ─▶ free
       └──▶ waits: its connection is not read, so that its sender's window closes

A receiver without pages keeps each block where it was read to, and nothing here has any effect.
``HolderT`` is whatever a transfer arrives by.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from testbed.contract.attempt import request_of
from testbed.contract.event import EventLog, Kind
from testbed_agents.transport.fault import Fault, FrameError
from testbed_agents.transport.pages import Key, Pages

HolderT = TypeVar("HolderT")


class Freed(StrEnum):
    """Why pages were freed: reasons of ``pages.freed``."""

    APPLIED = "applied"
    REFUSED = "refused"
    ENDED = "ended"
    """Its connection ended before all had come."""
    GIVEN_UP = "given-up"
    """It took too long, or a newer attempt takes its place."""
    ABORTED = "aborted"
    """Nobody wants the request any more."""
    PART_LOST = "part-lost"
    """One of its parts failed."""


@dataclass(slots=True)
class _Landing:
    pages: tuple[int, ...]
    freed: Freed | None = None
    """Why it has no pages any more; whoever still writes does so by its numbers."""


class Landings(Generic[HolderT]):
    """All transfers that have pages, or wait for some, in order of arrival."""

    def __init__(self, count: int, log: EventLog) -> None:
        self._pages = Pages(count) if count else None
        self._log = log
        self._landings: dict[Key, _Landing] = {}
        self._waiting: deque[tuple[Key, int, HolderT]] = deque()

    @property
    def held(self) -> int:
        """Pages that are owned."""
        return 0 if self._pages is None else self._pages.count - self._pages.free_count

    def begin(self, key: Key, blocks: int, holder: HolderT, patient: bool) -> bool:
        """Take a page for each block; False where the holder has to wait until it is named.

        Raises:
            FrameError: they will never be enough; or they are not now, and nobody waits here.
        """
        if self._pages is None or self.has(key):
            return True
        if not self._waiting and self._take(key, blocks):
            return True
        if blocks > self._pages.count or not patient:
            raise FrameError(
                Fault.FULL, f"request {key[0]}",
                f"{blocks} pages wanted, {self._pages.free_count} of {self._pages.count} are free",
            )  # fmt: skip
        self._waiting.append((key, blocks, holder))
        return False

    def write(self, key: Key, first: int, blocks: Sequence[memoryview]) -> None:
        """Blocks from number ``first`` on have arrived and are put into their pages."""
        landing = self._landings.get(key)
        if self._pages is None or landing is None:
            return
        for number, block in enumerate(blocks, start=first):
            page = landing.pages[number]
            owner = self._pages.write(page, block, key)
            if owner is not None:
                self._log.emit(
                    Kind.PAGE_OVERWRITTEN, req=owner[0], page=page, by=request_of(key[0]),
                    epoch=key[1], freed="" if landing.freed is None else landing.freed.value,
                )  # fmt: skip

    def views(self, key: Key, blocks: tuple[memoryview, ...]) -> tuple[memoryview, ...]:
        """The blocks as their pages hold them; those that were read, where there are no pages."""
        landing = self._landings.get(key)
        if self._pages is None or landing is None:
            return blocks
        return self._pages.views(landing.pages, blocks)

    def free(self, key: Key, why: Freed, writers: int = 0) -> tuple[HolderT, ...]:
        """Give a transfer's pages back; returns who has got some and may go on.

        ``writers`` connections can still bring blocks of it: its numbers are remembered, as a
        sender remembers them. Once is enough.
        """
        landing = self._landings.get(key)
        self._waiting = deque(one for one in self._waiting if one[0] != key)
        if self._pages is None or landing is None:
            return self._serve()
        if not writers:
            del self._landings[key]
        if landing.freed is None:
            landing.freed = why
            self._pages.free(landing.pages)
            self._log.emit(
                Kind.PAGES_FREED, req=key[0], epoch=key[1], pages=len(landing.pages),
                free=self._pages.free_count, reason=why.value, writers=writers,
            )  # fmt: skip
        return self._serve()

    def has(self, key: Key) -> bool:
        """Whether it owns pages."""
        landing = self._landings.get(key)
        return landing is not None and landing.freed is None

    def _serve(self) -> tuple[HolderT, ...]:
        served: list[HolderT] = []
        while self._waiting:
            key, blocks, _ = self._waiting[0]
            if not self.has(key) and not self._take(key, blocks):
                break
            served.append(self._waiting.popleft()[2])
        return tuple(served)

    def _take(self, key: Key, blocks: int) -> bool:
        if self._pages is None:
            return True
        pages = self._pages.take(key, blocks)
        if pages is None:
            return False
        self._landings[key] = _Landing(pages)
        self._log.emit(
            Kind.PAGES_TAKEN, req=key[0], epoch=key[1], pages=blocks, free=self._pages.free_count
        )
        return True
