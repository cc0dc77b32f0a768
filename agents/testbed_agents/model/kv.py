"""KV rows of one sequence: shared segments in front, one growing segment behind.

::

    ┌ document[:hit] ┐┌ restored blocks ┐┌ own rows, room to grow ┐
    │ shared by all  ││ this request's  ││ output tokens …        │

Sharing is by view: thousands of sequences hold one copy of the base document. Rows
are written once and never again, so a view can never change under its holder.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from testbed.errors import AgentError, ProtocolError
from testbed_agents.model.layout import KvLayout
from testbed_agents.model.turned import Turned
from testbed_agents.model.weights import DTYPES

_FIRST_ROOM = 8
"""Rows that the own segment starts with; it doubles when full."""


class Kv:
    """See ``protocol.KvRows``. Not safe for use by two threads at once."""

    __slots__ = ("_own", "_segments", "_shared", "_used", "layout", "turned")

    def __init__(self, layout: KvLayout, segments: tuple[torch.Tensor, ...] = ()) -> None:
        self.layout = layout
        self._segments = tuple(segment for segment in segments if segment.shape[0])
        self._shared = sum(segment.shape[0] for segment in self._segments)
        self._own: torch.Tensor | None = None
        self._used = 0
        self.turned: Turned | None = None
        """What attention reads, made by the engine once this sequence is continued."""

    @classmethod
    def from_blocks(cls, layout: KvLayout, blocks: Iterable[bytes | bytearray | memoryview]) -> Kv:
        """Rows from the bytes of consecutive blocks, copied once into one buffer.

        Raises:
            ProtocolError: the bytes do not make whole rows.
        """
        buffer = bytearray().join(blocks)
        rows, rest = divmod(len(buffer), layout.row_bytes)
        if rest:
            raise ProtocolError(
                "restore KV",
                f"{len(buffer)} bytes",
                f"not a multiple of {layout.row_bytes} bytes per token",
                "sender and receiver must run the same model",
            )
        if not rows:
            return cls(layout)
        numbers = torch.frombuffer(buffer, dtype=DTYPES[layout.item_bytes])
        return cls(layout, (numbers.view(rows, *layout.row_shape),))

    @property
    def length(self) -> int:
        """Tokens held."""
        return self._shared + self._used

    def segments(self) -> tuple[torch.Tensor, ...]:
        """All rows in order, each ``[tokens, layer, key | value, head, dim]``."""
        if self._own is None or not self._used:
            return self._segments
        return (*self._segments, self._own[: self._used])

    def prefix(self, length: int) -> Kv:
        """The first ``length`` rows, shared.

        Raises:
            AgentError: there are fewer rows than that.
        """
        if not 0 <= length <= self.length:
            raise AgentError("take prefix of KV", f"{length} rows", f"{self.length} are there")
        taken: list[torch.Tensor] = []
        missing = length
        for segment in self.segments():
            taken.append(segment[:missing])
            missing -= taken[-1].shape[0]
            if not missing:
                break
        return Kv(self.layout, tuple(taken))

    def part(self, begin: int, end: int) -> Kv:
        """The rows from ``begin`` up to ``end``, shared.

        Raises:
            AgentError: they are not all there.
        """
        if not 0 <= begin <= end <= self.length:
            raise AgentError("take rows of KV", f"{begin} to {end}", f"{self.length} are there")
        taken: list[torch.Tensor] = []
        offset = 0
        for segment in self.segments():
            count = segment.shape[0]
            taken.append(segment[max(0, begin - offset) : max(0, min(count, end - offset))])
            offset += count
        return Kv(self.layout, tuple(taken))

    def join(self, tail: Kv) -> Kv:
        """These rows followed by ``tail``'s, shared.

        Raises:
            AgentError: the two come from different models.
        """
        if tail.layout != self.layout:
            raise AgentError("join KV", repr(tail.layout), f"differs from {self.layout!r}")
        return Kv(self.layout, self.segments() + tail.segments())

    def append(self, rows: torch.Tensor) -> None:
        """Copy ``rows`` behind the last one."""
        count = rows.shape[0]
        if self._own is None or self._used + count > self._own.shape[0]:
            room = max(_FIRST_ROOM, 2 * self._used, self._used + count)
            grown = torch.empty((room, *self.layout.row_shape), dtype=rows.dtype)
            if self._own is not None:
                grown[: self._used] = self._own[: self._used]
            self._own = grown
        self._own[self._used : self._used + count] = rows
        self._used += count

    def block_bytes(self, index: int, block_tokens: int) -> memoryview:
        """The bytes of block ``index``; without a copy where the block lies in one segment.

        Raises:
            AgentError: the block is not wholly there.
        """
        begin, end = index * block_tokens, (index + 1) * block_tokens
        if block_tokens < 1 or index < 0 or end > self.length:
            raise AgentError(
                "read KV block",
                f"block {index} of {block_tokens} tokens",
                f"only {self.length} rows are there",
            )
        parts: list[torch.Tensor] = []
        offset = 0
        for segment in self.segments():
            count = segment.shape[0]
            part = segment[max(0, begin - offset) : max(0, min(count, end - offset))]
            if part.shape[0]:
                parts.append(part)
            offset += count
        rows = parts[0] if len(parts) == 1 else torch.cat(parts)
        return tensor_bytes(rows)

    def blocks(self, block_tokens: int) -> tuple[memoryview, ...]:
        """All blocks in order.

        Raises:
            AgentError: the rows do not make whole blocks.
        """
        whole, rest = divmod(self.length, block_tokens)
        if rest:
            raise AgentError(
                "cut KV into blocks", f"{self.length} rows", f"{rest} left over of {block_tokens}"
            )
        segments = self.segments()
        if len(segments) != 1:
            return tuple(self.block_bytes(index, block_tokens) for index in range(whole))
        data, size = tensor_bytes(segments[0]), block_tokens * self.layout.row_bytes
        return tuple([data[begin : begin + size] for begin in range(0, whole * size, size)])


def tensor_bytes(tensor: torch.Tensor) -> memoryview:
    """A tensor's bytes; without a copy where it is contiguous."""
    return tensor.detach().contiguous().numpy().data.cast("B")
