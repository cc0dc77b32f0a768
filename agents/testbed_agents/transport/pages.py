"""Pages that KV lands in, each for one block: owned, written, freed, owned by another. Pure.

::

    free ──take──▶ owned by (request, epoch) ──free──▶ free      the one freed last goes first

A page says whose it is and takes what anybody writes, as memory does: who may write is the
matter of ``landings``. What is written into another's page is reported, not prevented.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Key: TypeAlias = tuple[int, int]
"""Request and epoch."""


class Pages:
    """``count`` pages. Misuse raises ValueError: it is a mistake of the caller."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError("there is no memory without pages")
        self.count = count
        self._free = list(range(count))
        self._owners: dict[int, Key] = {}
        self._content = [bytearray() for _ in range(count)]

    @property
    def free_count(self) -> int:
        """Pages that nobody owns."""
        return len(self._free)

    def owner(self, page: int) -> Key | None:
        """Whose it is; None while it is free."""
        return self._owners.get(page)

    def take(self, owner: Key, count: int) -> tuple[int, ...] | None:
        """``count`` pages for ``owner``; None where there are fewer."""
        if count > len(self._free):
            return None
        taken = tuple([self._free.pop() for _ in range(count)])
        self._owners |= dict.fromkeys(taken, owner)
        return taken

    def write(self, page: int, data: bytes | memoryview, writer: Key) -> Key | None:
        """Put a block there; returns whose block that overwrites, if it is not the writer's."""
        content = self._content[page]
        if len(content) == len(data):
            content[:] = data  # views of it see the change
        else:
            self._content[page] = bytearray(data)
        owner = self._owners.get(page)
        return owner if owner != writer else None

    def views(self, pages: Sequence[int], wanted: Iterable[memoryview]) -> tuple[memoryview, ...]:
        """What is in the pages now and later, each as long as ``wanted`` says.

        Zeros stand for a page that nothing of that size was written into.
        """
        found: list[memoryview] = []
        for page, block in zip(pages, wanted, strict=True):
            if len(self._content[page]) != len(block):
                self._content[page] = bytearray(len(block))
            found.append(memoryview(self._content[page]))
        return tuple(found)

    def free(self, pages: Iterable[int]) -> None:
        """Nobody owns them any more; what is in them stays until it is overwritten."""
        for page in pages:
            if self._owners.pop(page, None) is None:
                raise ValueError(f"page {page} is free already")
            self._free.append(page)
