"""Frames: what is encoded is decoded; anything else is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed_agents.transport import Fault, FrameError, frame
from testbed_agents.transport.layout import blocks_per_chunk, lay_out, minimum_bytes

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
HEADERS = st.builds(
    frame.Header, U64, U32, st.integers(0, frame.MAX_BLOCKS),
    st.integers(0, frame.MAX_WIRE), st.integers(1, 2**32 - 1),
)  # fmt: skip
CHUNKS = st.builds(frame.Chunk, U64, U32, U32, U64, U64, U64)
ACKS = st.builds(frame.Ack, st.sampled_from(frame.Status), U64, U32, st.text(max_size=20))


@given(HEADERS)
def test_a_header_survives(header: frame.Header) -> None:
    encoded = frame.encode_header(header, ())
    assert frame.decode_header(encoded[: frame.HEADER_BYTES]) == header


@given(CHUNKS)
def test_a_chunk_header_survives(chunk: frame.Chunk) -> None:
    assert frame.decode_chunk(frame.encode_chunk(chunk)) == chunk


@given(ACKS)
def test_an_acknowledgement_survives(ack: frame.Ack) -> None:
    encoded = frame.encode_ack(ack)
    assert len(encoded) == frame.ACK_BYTES
    assert frame.decode_ack(encoded) == ack


@given(st.text(min_size=60))
def test_a_long_reason_is_cut_at_a_character(reason: str) -> None:
    decoded = frame.decode_ack(frame.encode_ack(frame.Ack(frame.Status.REFUSED, 1, 0, reason)))
    assert reason.startswith(decoded.reason)
    assert len(decoded.reason.encode("utf-8")) > frame.REASON_BYTES - 4 or decoded.reason == reason


def test_a_hello_survives_and_names_are_bounded() -> None:
    hello = frame.Hello("p1", "md1", 3, 160, verify_all=False)
    assert frame.decode_hello(frame.encode_hello(hello)) == hello
    with pytest.raises(ValueError, match="1 to 16"):
        frame.encode_hello(frame.Hello("p" * 17, "md1", 0, 1, verify_all=False))


@given(CHUNKS, st.integers(0, frame.CHUNK_BYTES * 8 - 1))
def test_any_flipped_bit_of_a_chunk_header_is_seen(chunk: frame.Chunk, bit: int) -> None:
    data = bytearray(frame.encode_chunk(chunk))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FrameError):
        frame.decode_chunk(bytes(data))


@given(st.binary(max_size=2 * frame.ACK_BYTES))
def test_garbage_is_refused_and_nothing_else_happens(data: bytes) -> None:
    for decode in (frame.decode_hello, frame.decode_header, frame.decode_chunk, frame.decode_ack):
        with pytest.raises(FrameError):
            decode(data)


def test_another_version_is_named() -> None:
    data = bytearray(frame.encode_ack(frame.Ack(frame.Status.APPLIED, 1, 0)))
    data[4] += 1
    with pytest.raises(FrameError) as caught:
        frame.decode_ack(bytes(data))
    assert caught.value.reason is Fault.BAD_VERSION


def test_oversized_tables_are_refused_on_both_sides() -> None:
    with pytest.raises(FrameError) as caught:
        frame.encode_header(frame.Header(1, 0, frame.MAX_BLOCKS + 1, 10, 1), ())
    assert caught.value.reason is Fault.OVERSIZED
    header = frame.Header(1, 0, 1, 10**9, 1)
    entry = frame.Entry(frame.MAX_BLOCK_SUBSTANCE + 1, b"\0" * 16)
    encoded = frame.encode_header(header, (entry,))
    with pytest.raises(FrameError) as caught:
        frame.decode_table(encoded[: frame.HEADER_BYTES], encoded[frame.HEADER_BYTES :], 1)
    assert caught.value.reason is Fault.OVERSIZED


@given(
    st.lists(st.integers(0, 5_000), max_size=60),
    st.integers(0, 3_000_000),
    st.integers(1, 500_000),
)
def test_chunks_cover_the_transfer_exactly(
    substance: list[int], wire_bytes: int, chunk_bytes: int
) -> None:
    per_chunk = blocks_per_chunk(len(substance), wire_bytes, chunk_bytes)
    layout = lay_out(substance, wire_bytes, per_chunk)
    assert layout.wire_bytes == max(wire_bytes, minimum_bytes(substance, per_chunk))
    offset = frame.HEADER_BYTES + frame.table_bytes(len(substance))
    block = 0
    for seq, chunk in enumerate(layout.chunks):
        assert (chunk.seq, chunk.offset, chunk.first) == (seq, offset, block)
        assert chunk.padding >= 0
        offset, block = chunk.end, chunk.last
    assert (offset, block) == (layout.wire_bytes, len(substance))


def test_every_block_costs_the_same_on_the_wire() -> None:
    layout = lay_out([100] * 64, 64 * 600_000, 3)
    whole = [chunk.length for chunk in layout.chunks if chunk.last - chunk.first == 3]
    assert max(whole) - min(whole) <= 1
