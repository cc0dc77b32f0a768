"""What the router believes each instance holds: prefixes without payload.

It is told where prompts were sent, and forgets as the instances themselves are expected to:
least recently used first, the end of a prompt before its beginning. It can be wrong in both
directions; the instance's own cache decides, and ``shorten`` takes its word::

    root ── [k0 k1] {p1 p2 p3} ─┬─ [k2 k3 k4] {p1 p2}
                                └─ [k9] {p3}
"""

from __future__ import annotations

from typing import Self

from testbed_agents.cache.eldest import Eldest
from testbed_agents.cache.node import Node, below, common_length, reach, upwards


class Holding(Node):
    """Blocks, and who holds all of them since when; a subset of the parent's holders."""

    __slots__ = ("holders",)

    def __init__(self, keys: tuple[int, ...] = ()) -> None:
        super().__init__(keys)
        self.holders: dict[str, int] = {}

    def upper_half(self, at: int) -> Self:
        """The first ``at`` blocks, with the same holders."""
        upper = type(self)(self.keys[:at])
        upper.holders = dict(self.holders)
        return upper

    def is_end_of(self, instance: str) -> bool:
        """Whether the instance holds this and nothing behind it."""
        return instance in self.holders and not any(
            instance in child.holders for child in self.children.values()
        )


class PrefixIndex:
    """Prefixes by instance, at most ``blocks`` blocks of each instance.

    Give it the blocks of one instance's budget, so that it forgets when they do.
    """

    def __init__(self, blocks: int) -> None:
        if blocks < 1:
            raise ValueError("an index holds at least one block")
        self._blocks = blocks
        self._root = Holding()
        self._held: dict[str, int] = {}
        self._eldest: dict[str, Eldest[Holding]] = {}
        self._uses = 0

    def longest(self, keys: tuple[int, ...]) -> dict[str, int]:
        """Blocks of the prompt that each instance holds; without those that hold none."""
        found: dict[str, int] = {}
        node, at = self._root, 0
        last: dict[str, int] = {}
        while at < len(keys):
            child = node.children.get(keys[at])
            if child is None:
                break
            if len(child.holders) < len(last):  # holders only ever become fewer
                found.update(dict.fromkeys(last, at))
            last, edge = child.holders, child.keys
            end = at + len(edge)
            if keys[at:end] != edge:
                at += common_length(edge, keys, at)
                break
            node, at = child, end
        found.update(dict.fromkeys(last, at))
        return found

    def record(self, instance: str, keys: tuple[int, ...]) -> None:
        """A prompt was sent to an instance, which will hold all of its blocks.

        Where they exceed the bound, the end of the least recently sent is forgotten first,
        and of a single prompt longer than the bound, its own end.
        """
        if not keys:
            return
        node, known = reach(self._root, keys)
        if known < len(keys):
            leaf = Holding(keys[known:])
            node.adopt(leaf)
            node = leaf
        self._uses += 1
        held = self._held.get(instance, 0)
        for part in upwards(node):
            if part is self._root:
                break
            if instance not in part.holders:
                held += len(part.keys)
            part.holders[instance] = self._uses
        self._held[instance] = held
        self._offer(instance, node)
        while self._held[instance] > self._blocks:
            self._forget_eldest(instance, self._held[instance] - self._blocks)

    def shorten(self, instance: str, keys: tuple[int, ...], blocks: int) -> None:
        """The instance said that it holds only the first ``blocks`` blocks of a prompt.

        What it may hold of them beyond what was known is not learned here: ``record`` does.
        """
        if not 0 <= blocks <= len(keys):
            raise ValueError(f"{blocks} of {len(keys)} blocks")
        if blocks == len(keys):
            return
        node, known = reach(self._root, keys[:blocks])
        wrong = node.children.get(keys[blocks]) if known == blocks else None
        if wrong is not None:
            self._drop_below(instance, wrong)
            self._offer(instance, node)

    def forget(self, instance: str) -> None:
        """The instance is gone, or starts empty."""
        self._drop_below(instance, self._root)
        self._held.pop(instance, None)
        self._eldest.pop(instance, None)

    def held(self, instance: str) -> int:
        """Blocks that the instance is believed to hold."""
        return self._held.get(instance, 0)

    def check(self) -> None:
        """Count everything anew; for tests.

        Raises:
            ValueError: a count is wrong, or the tree is not one.
        """
        held: dict[str, int] = {}
        ends: dict[str, set[int]] = {}
        for node in below(self._root):
            for first, child in node.children.items():
                _require(child.parent is node and child.keys[:1] == (first,), "a broken edge")
                _require(bool(child.holders), "blocks that nobody holds")
                _require(
                    node is self._root or child.holders.keys() <= node.holders.keys(),
                    "blocks held without those before",
                )
            for instance in node.holders:
                held[instance] = held.get(instance, 0) + len(node.keys)
                if node.is_end_of(instance):
                    ends.setdefault(instance, set()).add(id(node))
        _require(held == {name: n for name, n in self._held.items() if n}, "a wrong count")
        _require(all(n <= self._blocks for n in held.values()), "a bound exceeded")
        for instance, eldest in self._eldest.items():
            _require(eldest.candidates() == ends.get(instance, set()), "an end that is kept")

    def _offer(self, instance: str, node: Holding) -> None:
        """A node that may have become the end of what an instance holds."""
        if node.is_end_of(instance):
            if instance not in self._eldest:
                self._eldest[instance] = Eldest(
                    lambda one, stamp: (
                        one.holders.get(instance) == stamp and one.is_end_of(instance)
                    )
                )
            self._eldest[instance].push(node.holders[instance], node)

    def _forget_eldest(self, instance: str, blocks: int) -> None:
        """Forget up to ``blocks`` blocks at the end that was used least recently."""
        node = self._eldest[instance].first()
        if node is None or node.parent is None:
            raise ValueError(f"the index is inconsistent: {instance} holds blocks without an end")
        rest = len(node.keys) - blocks
        above = node.split(rest) if rest > 0 else node.parent
        self._drop(instance, node)
        self._offer(instance, above)

    def _drop_below(self, instance: str, node: Holding) -> None:
        """Forget a node and all under it, children before their parents."""
        for part in reversed([part for part in below(node) if instance in part.holders]):
            self._drop(instance, part)

    def _drop(self, instance: str, node: Holding) -> None:
        del node.holders[instance]
        self._held[instance] -= len(node.keys)
        if not node.holders:
            node.detach()


def _require(truth: bool, otherwise: str) -> None:
    if not truth:
        raise ValueError(f"the index is inconsistent: {otherwise}")
