"""A compressed tree over rows of keys: an edge holds many, and splits where rows part.

Nothing here relies on keys being chained: any rows of integers make a correct tree. Edges
are split and never joined, so a path of n blocks has at most n nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self, TypeVar

N = TypeVar("N", bound="Node")


class Node:
    """A node and the edge that leads to it; the root's edge is empty."""

    __slots__ = ("children", "keys", "parent")
    keys: tuple[int, ...]
    parent: Self | None
    children: dict[int, Self]
    """By the first key of their edge."""

    def __init__(self, keys: tuple[int, ...] = ()) -> None:
        self.keys = keys
        self.parent = None
        self.children = {}

    def adopt(self, child: Self) -> None:
        """Hang a node under this one (in place of the one with the same first key)."""
        child.parent = self
        self.children[child.keys[0]] = child

    def detach(self) -> Self:
        """Take this node out of the tree; returns the node it hung under."""
        parent = self.parent
        if parent is None or self.children:
            raise ValueError("only a leaf can be taken out")
        del parent.children[self.keys[0]]
        self.parent = None
        return parent

    def split(self, at: int) -> Self:
        """Part the edge after ``at`` keys; this node stays the lower half, the upper is new."""
        parent = self.parent
        if parent is None or not 0 < at < len(self.keys):
            raise ValueError(f"an edge of {len(self.keys)} keys cannot be split at {at}")
        upper = self.upper_half(at)
        parent.adopt(upper)
        self.keys = self.keys[at:]
        upper.adopt(self)
        return upper

    def upper_half(self, at: int) -> Self:
        """A new node with the first ``at`` keys; moves what belongs to these blocks."""
        return type(self)(self.keys[:at])


def common_length(edge: tuple[int, ...], keys: tuple[int, ...], at: int) -> int:
    """How many keys of ``edge`` equal those of ``keys`` from ``at`` on.

    Halves the range; slices are compared in C, each key about once.
    """
    low, high = 0, min(len(edge), len(keys) - at)
    while low < high:
        middle = (low + high + 1) // 2
        if edge[low:middle] == keys[at + low : at + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def reach(root: N, keys: tuple[int, ...]) -> tuple[N, int]:
    """The node where the longest known prefix of ``keys`` ends, and its length.

    An edge that the prefix ends inside of is split there.
    """
    node, at = root, 0
    while at < len(keys):
        child = node.children.get(keys[at])
        if child is None:
            break
        edge = child.keys
        end = at + len(edge)
        if keys[at:end] != edge:
            shared = common_length(edge, keys, at)
            return child.split(shared), at + shared
        node, at = child, end
    return node, at


def upwards(node: N) -> Iterator[N]:
    """The node and all above it, the root included."""
    above: N | None = node
    while above is not None:
        yield above
        above = above.parent


def below(node: N) -> Iterator[N]:
    """The node and all under it, parents before their children."""
    todo = [node]
    while todo:
        current = todo.pop()
        yield current
        todo.extend(current.children.values())
