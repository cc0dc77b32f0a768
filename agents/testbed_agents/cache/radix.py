"""The prefix cache of one instance: P avoids compute with it, MD avoids transfer.

Least recently used blocks leave first, always from the end of a prompt: a block is worth
nothing without those before it. A prompt is used when it is matched, published and released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Generic, Self, TypeVar

from testbed_agents.cache.budget import Budget
from testbed_agents.cache.eldest import Eldest
from testbed_agents.cache.match import Match
from testbed_agents.cache.node import Node, below, reach, upwards
from testbed_agents.cache.reservation import Refusal, Reservation
from testbed_agents.cache.stats import Stats

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Published:
    """Outcome of a publication."""

    new: int
    """Blocks that the cache took."""
    duplicates: int
    """Blocks that were there already; the first copy stays, the room of these is free again."""
    evicted: tuple[int, ...] = ()
    """Keys of blocks that made room; empty where it had been reserved."""


class Stretch(Node, Generic[V]):
    """Blocks that were always used and locked together.

    A lock on a prompt counts at each node of its path, so a node has at least as many
    locks as its children together, and is used no earlier than they.
    """

    __slots__ = ("locks", "stamp", "values")

    def __init__(self, keys: tuple[int, ...] = (), values: tuple[V, ...] = ()) -> None:
        super().__init__(keys)
        self.values = values
        self.locks = 0
        self.stamp = 0

    def upper_half(self, at: int) -> Self:
        """The first ``at`` blocks; both halves stay under the same locks."""
        upper = type(self)(self.keys[:at], self.values[:at])
        self.values = self.values[at:]
        upper.locks, upper.stamp = self.locks, self.stamp
        return upper


class RadixCache(Generic[V]):
    """Blocks by prompt prefix, with one payload a block, within a budget of bytes.

    Misuse (a lock released twice, more blocks published than reserved) raises ValueError:
    it is a mistake of the caller. No room is no mistake: it is a ``Refusal``.
    """

    def __init__(self, budget_bytes: int, block_bytes: int) -> None:
        self._budget = Budget(budget_bytes, block_bytes)
        self._root: Stretch[V] = Stretch()
        self._eldest: Eldest[Stretch[V]] = Eldest(_is_evictable)
        self._uses = 0
        self._asked = self._hits = self._published = self._duplicates = 0
        self._evicted = self._refusals = 0
        self._reservations: set[Reservation] = set()

    def match(self, keys: tuple[int, ...]) -> Match[V]:
        """Find and lock the longest cached prefix; never refuses."""
        node, blocks = reach(self._root, keys)
        self._lock(node)
        self._asked += len(keys)
        self._hits += blocks
        path = [part.values for part in upwards(node)]
        values = tuple(chain.from_iterable(reversed(path)))
        return Match(values, partial(self._unlock, node))

    def reserve(self, blocks: int) -> Reservation | Refusal:
        """Set room aside, evicting what nobody holds; all or nothing.

        Hold a match on the prompt meanwhile, or its own prefix may make the room. Who is
        refused and waits should release that match, or two who wait may lock each other out.
        """
        if blocks < 0:
            raise ValueError(f"{blocks} blocks cannot be reserved")
        if blocks > self._budget.attainable:
            self._refusals += 1
            return Refusal.TOO_LARGE if blocks > self._budget.capacity else Refusal.BUSY
        evicted = self.evict(blocks - self._budget.free)
        self._budget.reserve(blocks)

        def end(published: int) -> None:
            self._reservations.remove(reservation)
            self._budget.settle(blocks, published)

        reservation = Reservation(blocks, evicted, end)
        self._reservations.add(reservation)
        return reservation

    def publish(
        self, keys: tuple[int, ...], values: Sequence[V], reservation: Reservation | None = None
    ) -> Published | Refusal:
        """Let verified blocks be found; those that are there already keep their first copy.

        Args:
            keys: the prompt from its first block on.
            values: payload of its last ``len(values)`` blocks; those before must be cached.
            reservation: the room, which ends here. Without one, room is made as by
                ``reserve``; only then can the outcome be a refusal, and nothing is published.

        Raises:
            ValueError: more values than keys, blocks before the first value that are not
                cached (was the match released too early?), or a reservation that has
                ended, is of another cache or too small. The reservation then stays as it was.
        """
        before = len(keys) - len(values)
        if before < 0:
            raise ValueError(f"{len(values)} values for {len(keys)} keys")
        if reservation is not None and reservation not in self._reservations:
            raise ValueError("the reservation has ended or belongs to another cache")
        node, cached = reach(self._root, keys)
        new = len(keys) - cached
        if cached < before:
            raise ValueError(f"{before} blocks should be cached, {cached} are")
        if reservation is not None and new > reservation.blocks:
            raise ValueError(f"{new} new blocks do not fit into {reservation.blocks} reserved")
        evicted: tuple[int, ...] = ()
        self._lock(node)  # the prefix must not make the room
        try:
            if reservation is None:
                room = self.reserve(new)
                if isinstance(room, Refusal):
                    return Refusal.TOO_LARGE if len(keys) > self._budget.capacity else room
                reservation, evicted = room, room.evicted
            reservation.settle(new)
        finally:
            self._unlock(node)
        if new:
            self._append(node, keys[cached:], tuple(values[cached - before :]))
        self._published += new
        self._duplicates += len(values) - new
        return Published(new, len(values) - new, evicted)

    def evict(self, blocks: int) -> tuple[int, ...]:
        """Drop up to ``blocks`` blocks that nobody holds, least recently used first.

        Returns their keys in order: fewer than asked for where the others are locked.
        """
        gone: list[int] = []
        while len(gone) < blocks:
            leaf = self._eldest.first()
            if leaf is None:
                break
            rest = max(0, len(leaf.keys) - (blocks - len(gone)))
            gone.extend(reversed(leaf.keys[rest:]))
            leaf.values = leaf.values[:rest]  # at once: stale entries of the heap keep the node
            if rest:
                leaf.keys = leaf.keys[:rest]
            else:
                self._offer(leaf.detach())
        self._budget.evict(len(gone))
        self._evicted += len(gone)
        return tuple(gone)

    @property
    def blocks(self) -> int:
        """Blocks in the cache."""
        return self._budget.used

    @property
    def stats(self) -> Stats:
        """Counters since the start, and what is held now."""
        budget = self._budget
        return Stats(
            asked_blocks=self._asked,
            hit_blocks=self._hits,
            published_blocks=self._published,
            duplicate_blocks=self._duplicates,
            evicted_blocks=self._evicted,
            refusals=self._refusals,
            budget_bytes=budget.capacity * budget.block_bytes,
            used_bytes=budget.used * budget.block_bytes,
            reserved_bytes=budget.reserved * budget.block_bytes,
            locked_bytes=budget.locked * budget.block_bytes,
            high_water_bytes=budget.high_water * budget.block_bytes,
            open_matches=self._root.locks,
            open_reservations=len(self._reservations),
        )

    def check(self) -> None:
        """Count everything anew; for tests, and for the end of a run.

        Raises:
            ValueError: a count is wrong, or the tree is not one.
        """
        used = locked = 0
        candidates = self._eldest.candidates()
        for node in below(self._root):
            used += len(node.keys)
            locked += len(node.keys) if node.locks else 0
            for first, child in node.children.items():
                _require(child.parent is node and child.keys[:1] == (first,), "a broken edge")
                _require(child.stamp <= node.stamp, "a prefix older than what follows it")
            _require(len(node.keys) == len(node.values), "keys without values")
            _require(node.locks >= sum(c.locks for c in node.children.values()), "a lost lock")
            leaf = node is not self._root and not node.children and not node.locks
            _require(leaf == (id(node) in candidates), "a leaf that cannot be evicted")
        reserved = sum(reservation.blocks for reservation in self._reservations)
        counted = (self._budget.used, self._budget.locked, self._budget.reserved)
        _require(counted == (used, locked, reserved), f"{counted}, not {(used, locked, reserved)}")
        _require(self._budget.free >= 0, "a budget exceeded")

    def _append(self, node: Stretch[V], keys: tuple[int, ...], values: tuple[V, ...]) -> None:
        """Blocks behind a prefix that was used last; on the same edge where that is possible."""
        if node is not self._root and not node.children and not node.locks:
            node.keys, node.values = node.keys + keys, node.values + values
            return
        leaf = Stretch(keys, values)
        leaf.stamp = node.stamp
        node.adopt(leaf)
        self._offer(leaf)

    def _lock(self, node: Stretch[V]) -> None:
        self._uses += 1
        for part in upwards(node):
            part.stamp = self._uses
            if not part.locks:
                self._budget.lock(len(part.keys))
            part.locks += 1

    def _unlock(self, node: Stretch[V]) -> None:
        self._uses += 1
        for part in upwards(node):
            part.stamp = self._uses
            part.locks -= 1
            if not part.locks:
                self._budget.unlock(len(part.keys))
        self._offer(node)

    def _offer(self, node: Stretch[V]) -> None:
        """A node that may have become a leaf that nobody holds."""
        if _is_evictable(node, node.stamp):
            self._eldest.push(node.stamp, node)


def _is_evictable(node: Stretch[V], stamp: int) -> bool:
    """Whether it is a leaf in the tree that nobody holds, last used at ``stamp``."""
    return node.stamp == stamp and not node.locks and not node.children and node.parent is not None


def _require(truth: bool, otherwise: str) -> None:
    if not truth:
        raise ValueError(f"the cache is inconsistent: {otherwise}")
