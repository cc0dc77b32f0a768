"""Sender's pieces into receiver's parser, without a socket: nothing damaged gets through."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed_agents.transport import Fault, FrameError, IncomingTransfer, OutgoingTransfer, frame
from testbed_agents.transport.epochs import Epochs
from testbed_agents.transport.parser import Begun, Complete, Parser, Skip, read_transfers
from testbed_agents.transport.pieces import Pad, Parcel


def wire(transfer: OutgoingTransfer, chunk_bytes: int = 4_096, verify_all: bool = False) -> bytes:
    """All bytes of a transfer, padding included."""
    return b"".join(
        bytes(piece.count) if isinstance(piece, Pad) else bytes(piece)
        for piece in Parcel(transfer, chunk_bytes, verify_all).pieces()
    )


def parse(data: bytes, epochs: Epochs | None = None, verify_all: bool = False) -> IncomingTransfer:
    """Feed a whole transfer; raises FrameError, or EOFError where bytes are missing."""
    hello = frame.Hello("p1", "md1", 0, 1, verify_all)
    parser: Parser = read_transfers(hello, epochs or Epochs())
    step, offset = next(parser), 0
    while True:
        match step:
            case Begun():
                step = parser.send(memoryview(b""))
            case Complete(transfer):
                assert offset == len(data)
                return transfer
            case _:
                assert step.count <= step.ahead
                end = offset + step.count
                if end > len(data):
                    raise EOFError
                piece = memoryview(data)[offset:end]
                step = parser.send(memoryview(b"") if isinstance(step, Skip) else piece)
                offset = end


TRANSFERS = st.builds(
    OutgoingTransfer, st.integers(0, 2**40), st.integers(0, 9),
    st.lists(st.binary(max_size=200), max_size=12), st.integers(0, 40_000),
)  # fmt: skip
SAMPLE = OutgoingTransfer(7, 1, [bytes([i]) * 50 for i in range(6)], 20_000)


@given(TRANSFERS, st.integers(1, 20_000), st.booleans())
def test_blocks_arrive_as_sent_in_exactly_the_wanted_bytes(
    transfer: OutgoingTransfer, chunk_bytes: int, verify_all: bool
) -> None:
    parcel = Parcel(transfer, chunk_bytes, verify_all)
    data = wire(transfer, chunk_bytes, verify_all)
    assert len(data) == parcel.layout.wire_bytes >= transfer.wire_bytes
    arrived = parse(data, verify_all=verify_all)
    assert [bytes(block) for block in arrived.blocks] == transfer.blocks
    assert (arrived.request, arrived.epoch) == (transfer.request, transfer.epoch)
    assert arrived.wire_bytes == len(data)


def is_padding(position: int) -> bool:
    return any(
        chunk.end - frame.STAMP_BYTES - chunk.padding <= position < chunk.end - frame.STAMP_BYTES
        for chunk in Parcel(SAMPLE, 4_096, False).layout.chunks
    )


@given(st.data())
@settings(max_examples=300)
def test_any_flipped_bit_outside_the_padding_is_refused(data: st.DataObject) -> None:
    good = wire(SAMPLE)
    position = data.draw(st.integers(0, len(good) - 1).filter(lambda at: not is_padding(at)))
    bad = bytearray(good)
    bad[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(FrameError):
        parse(bytes(bad))


@given(st.data())
@settings(max_examples=300)
def test_verify_all_refuses_any_flipped_bit(data: st.DataObject) -> None:
    bad = bytearray(wire(SAMPLE, verify_all=True))
    bad[data.draw(st.integers(0, len(bad) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(FrameError):
        parse(bytes(bad), verify_all=True)


@given(st.data())
def test_lost_or_added_bytes_are_never_accepted(data: st.DataObject) -> None:
    good = wire(SAMPLE)
    at = data.draw(st.integers(0, len(good) - 1))
    count = data.draw(st.integers(1, 500))
    shorter = good[:at] + good[at + count :]
    longer = good[:at] + bytes(count) + good[at:]
    with pytest.raises((FrameError, EOFError)):
        parse(shorter)
    with pytest.raises((FrameError, EOFError, AssertionError)):
        parse(longer)


def test_a_duplicate_and_a_late_epoch_are_refused_by_name() -> None:
    epochs = Epochs()
    parse(wire(SAMPLE), epochs)
    with pytest.raises(FrameError) as duplicate:
        parse(wire(SAMPLE), epochs)
    assert duplicate.value.reason is Fault.DUPLICATE
    with pytest.raises(FrameError) as late:
        parse(wire(OutgoingTransfer(7, 0, [b"x"], 0)), epochs)
    assert late.value.reason is Fault.LATE
    parse(wire(OutgoingTransfer(7, 2, [b"x"], 0)), epochs)


def test_chunks_in_another_order_are_refused_by_name() -> None:
    first, second, *_ = Parcel(SAMPLE, 4_096, False).layout.chunks
    good = wire(SAMPLE)
    swapped = (
        good[: first.offset]
        + good[second.offset : second.end]
        + good[first.offset : first.end]
        + good[second.end :]
    )
    with pytest.raises(FrameError) as caught:
        parse(swapped)
    assert caught.value.reason is Fault.OUT_OF_ORDER


def test_a_chunk_of_another_transfer_is_refused() -> None:
    other = wire(OutgoingTransfer(8, 1, SAMPLE.blocks, SAMPLE.wire_bytes))
    chunk = Parcel(SAMPLE, 4_096, False).layout.chunks[1]
    good = wire(SAMPLE)
    mixed = good[: chunk.offset] + other[chunk.offset : chunk.end] + good[chunk.end :]
    with pytest.raises(FrameError) as caught:
        parse(mixed)
    assert caught.value.reason is Fault.OUT_OF_ORDER


def test_too_few_wire_bytes_for_the_blocks_are_refused() -> None:
    entry = frame.Entry(50, frame.digest(bytes(50)))
    data = frame.encode_header(frame.Header(1, 0, 1, 100, 1), (entry,))
    with pytest.raises(FrameError) as caught:
        parse(data + bytes(1_000))
    assert caught.value.reason is Fault.TRUNCATED
