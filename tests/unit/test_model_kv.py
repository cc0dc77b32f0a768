"""KV rows: shared prefixes never change, blocks survive the wire bit for bit."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import AgentError, ProtocolError
from testbed_agents.model.kv import Kv
from testbed_agents.model.layout import KvLayout

LAYOUT = KvLayout(layers=2, kv_heads=1, head_dim=4, item_bytes=8)


def rows(count: int, start: int = 0) -> torch.Tensor:
    """Rows that all differ: every number is its own index."""
    numbers = count * LAYOUT.row_bytes // LAYOUT.item_bytes
    first = start * LAYOUT.row_bytes // LAYOUT.item_bytes
    flat = torch.arange(first, first + numbers, dtype=torch.float64)
    return flat.view(count, *LAYOUT.row_shape)


def content(kv: Kv) -> bytes:
    return b"".join(kv.blocks(1))


def test_a_row_of_nano_is_a_kibibyte() -> None:
    assert KvLayout(layers=2, kv_heads=2, head_dim=16, item_bytes=8).row_bytes == 1024


def test_a_row_of_smollm2_is_46080_bytes() -> None:
    assert KvLayout(layers=30, kv_heads=3, head_dim=64, item_bytes=4).row_bytes == 46_080


@given(parts=st.lists(st.integers(0, 9), max_size=5), block=st.integers(1, 4))
def test_blocks_restore_bit_for_bit(parts: list[int], block: int) -> None:
    kv, start = Kv(LAYOUT), 0
    for part in parts:
        kv.append(rows(part, start))
        kv = kv.prefix(kv.length)
        start += part
    whole = kv.prefix(kv.length - kv.length % block)
    again = Kv.from_blocks(LAYOUT, whole.blocks(block))
    assert again.length == whole.length
    assert content(again) == content(whole)


@given(first=st.integers(1, 20), cut=st.integers(0, 20), more=st.integers(1, 20))
def test_growing_never_changes_what_is_shared(first: int, cut: int, more: int) -> None:
    parent = Kv(LAYOUT)
    parent.append(rows(first))
    child = parent.prefix(min(cut, first))
    before_parent, before_child = content(parent), content(child)
    child.append(rows(more, 100))
    parent.append(rows(more, 200))
    assert content(parent)[: len(before_parent)] == before_parent
    assert content(child)[: len(before_child)] == before_child
    assert child.length == min(cut, first) + more


def test_a_prefix_copies_nothing() -> None:
    parent = Kv(LAYOUT, (rows(8),))
    (shared,), (own,) = parent.prefix(5).segments(), parent.segments()
    assert shared.data_ptr() == own.data_ptr()


def test_a_block_across_segments_is_put_together() -> None:
    kv = Kv(LAYOUT, (rows(3),)).join(Kv(LAYOUT, (rows(5, 3),)))
    assert bytes(kv.block_bytes(1, 2)) == content(Kv(LAYOUT, (rows(8),)).prefix(4))[-128 * 2 :]


def test_bytes_that_make_no_whole_row_are_refused() -> None:
    with pytest.raises(ProtocolError, match="129 bytes"):
        Kv.from_blocks(LAYOUT, [bytes(129)])


def test_no_blocks_are_no_rows() -> None:
    assert Kv.from_blocks(LAYOUT, []).length == 0


def test_rows_of_another_model_are_not_joined() -> None:
    other = KvLayout(layers=1, kv_heads=1, head_dim=4, item_bytes=8)
    with pytest.raises(AgentError, match="join KV"):
        Kv(LAYOUT).join(Kv(other))


@pytest.mark.parametrize(("index", "block"), [(2, 2), (0, 5), (-1, 1), (0, 0)])
def test_a_block_that_is_not_there_is_an_error(index: int, block: int) -> None:
    with pytest.raises(AgentError, match="only 4 rows"):
        Kv(LAYOUT, (rows(4),)).block_bytes(index, block)


def test_a_prefix_beyond_the_end_is_an_error() -> None:
    with pytest.raises(AgentError, match="5 rows"):
        Kv(LAYOUT, (rows(4),)).prefix(5)


def test_rows_left_over_are_an_error() -> None:
    with pytest.raises(AgentError, match="1 left over"):
        Kv(LAYOUT, (rows(5),)).blocks(2)
