"""The least recently used of many candidates: a heap whose stale entries are skipped.

A node is pushed whenever it becomes a candidate or is used anew; entries that no longer
tell the truth stay until they surface or until half of the heap is stale.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

N = TypeVar("N")


class Eldest(Generic[N]):
    """Candidates by the stamp of their last use; equal stamps leave in order of arrival."""

    def __init__(self, is_current: Callable[[N, int], bool]) -> None:
        self._is_current = is_current
        self._heap: list[tuple[int, int, N]] = []
        self._serial = 0
        self._limit = 64

    def __len__(self) -> int:
        """Entries kept, stale ones included."""
        return len(self._heap)

    def push(self, stamp: int, node: N) -> None:
        """Remember that ``node`` was last used at ``stamp``; stamps are not negative."""
        self._serial += 1
        heappush(self._heap, (stamp, self._serial, node))
        if len(self._heap) > self._limit:
            self._prune()

    def first(self) -> N | None:
        """The candidate that was used least recently; it stays. None when there is none."""
        while self._heap:
            stamp, _, node = self._heap[0]
            if self._is_current(node, stamp):
                return node
            heappop(self._heap)
        return None

    def candidates(self) -> set[int]:
        """``id`` of each candidate (for checks)."""
        return {id(node) for stamp, _, node in self._heap if self._is_current(node, stamp)}

    def _prune(self) -> None:
        seen: set[int] = set()
        kept: list[tuple[int, int, N]] = []
        for entry in self._heap:
            stamp, _, node = entry
            if id(node) not in seen and self._is_current(node, stamp):
                seen.add(id(node))
                kept.append(entry)
        heapify(kept)
        self._heap = kept
        self._limit = 64 + 2 * len(kept)
