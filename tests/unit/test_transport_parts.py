"""One transfer in parts, pure: cut, parsed, assembled; late and foreign parts are refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed_agents.transport import Fault, FrameError, IncomingTransfer, OutgoingTransfer, frame
from testbed_agents.transport.assembly import Assemblies, Whole
from testbed_agents.transport.epochs import Epochs
from testbed_agents.transport.parser import Begun, Complete, Skip, read_transfers
from testbed_agents.transport.part import Part, decode_part, encode_part, shares
from testbed_agents.transport.pieces import Pad, Parcel, parcels_of

KEY = (7, 1)
Arrived = tuple[Part | None, IncomingTransfer]


def wire(parcel: Parcel) -> bytes:
    return b"".join(
        bytes(piece.count) if isinstance(piece, Pad) else bytes(piece) for piece in parcel.pieces()
    )


def parse(data: bytes, epochs: Epochs, connection: int = 0, verify_all: bool = False) -> Arrived:
    parser = read_transfers(frame.Hello("p1", "md1", connection, 99, verify_all), epochs)
    step, offset = next(parser), 0
    while True:
        match step:
            case Begun():
                step = parser.send(memoryview(b""))
            case Complete(transfer, part):
                assert offset == len(data)
                return part, transfer
            case _:
                end = offset + step.count
                assert end <= len(data)
                piece = memoryview(data)[offset:end]
                step = parser.send(memoryview(b"") if isinstance(step, Skip) else piece)
                offset = end


def sample(blocks: int = 6, wire_bytes: int = 20_000) -> OutgoingTransfer:
    return OutgoingTransfer(*KEY, [bytes([i]) * 50 for i in range(blocks)], wire_bytes)


@given(
    st.lists(st.binary(max_size=200), min_size=1, max_size=12),
    st.integers(0, 40_000), st.integers(1, 20_000), st.booleans(), st.data(),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_parts_in_any_order_make_the_transfer_in_exactly_the_wanted_bytes(
    blocks: list[bytes], wire_bytes: int, chunk_bytes: int, verify_all: bool, data: st.DataObject
) -> None:
    transfer = OutgoingTransfer(*KEY, blocks, wire_bytes)
    count = data.draw(st.integers(1, len(blocks)))
    parcels = parcels_of(transfer, chunk_bytes, verify_all, count)
    sent = [wire(parcel) for parcel in parcels]
    total = sum(map(len, sent))
    assert total == sum(parcel.layout.wire_bytes for parcel in parcels) >= wire_bytes
    if count == 1:
        assert sent == [wire(Parcel(transfer, chunk_bytes, verify_all))]
        return
    epochs, parts = Epochs(), Assemblies[int]()
    order = data.draw(st.permutations(range(count)))
    whole: Whole[int] | None = None
    for place, number in enumerate(order):
        part, arrived = parse(sent[number], epochs, number, verify_all)
        assert part is not None
        assert parts.begin(KEY, part, number) is (place == 0)
        whole = parts.complete(KEY, part, arrived)
        assert (whole is not None) is (place == count - 1)
    assert whole is not None
    assert [bytes(block) for block in whole.transfer.blocks] == blocks
    assert (whole.transfer.request, whole.transfer.epoch) == KEY
    assert (whole.transfer.wire_bytes, whole.transfer.connection) == (total, 0)
    assert whole.holders == tuple(range(count))
    assert len(parts) == 0


@given(st.integers(1, 40), st.integers(0, 10**9), st.data())
def test_shares_are_whole_blocks_in_order_and_lose_no_byte(
    blocks: int, wire_bytes: int, data: st.DataObject
) -> None:
    transfer = sample(blocks, wire_bytes)
    cut = shares(transfer, data.draw(st.integers(1, blocks)))
    assert [block for _, one in cut for block in one.blocks] == transfer.blocks
    assert sum(one.wire_bytes for _, one in cut) == wire_bytes
    assert all(one.blocks for _, one in cut)
    assert [first for first, _ in cut] == [
        sum(len(one.blocks) for _, one in cut[:n]) for n in range(len(cut))
    ]


@given(st.data())
@settings(max_examples=200)
def test_any_flipped_bit_of_a_part_outside_the_padding_is_refused(data: st.DataObject) -> None:
    parcel = parcels_of(sample(), 4_096, False, 2)[1]
    padding = {
        at
        for chunk in parcel.layout.chunks
        for at in range(
            chunk.end - frame.STAMP_BYTES - chunk.padding, chunk.end - frame.STAMP_BYTES
        )
    }
    bad = bytearray(wire(parcel))
    at = data.draw(st.integers(0, len(bad) - 1).filter(lambda place: place not in padding))
    bad[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(FrameError):
        parse(bytes(bad), Epochs())


def test_a_part_comes_once_and_not_behind_the_fence() -> None:
    sent = [wire(parcel) for parcel in parcels_of(sample(), 4_096, False, 3)]
    epochs = Epochs()
    parse(sent[0], epochs)
    with pytest.raises(FrameError) as again:
        parse(sent[0], epochs)
    assert again.value.reason is Fault.DUPLICATE
    parse(sent[2], epochs)
    epochs.fence(*KEY)
    with pytest.raises(FrameError) as late:
        parse(sent[1], epochs)
    assert late.value.reason is Fault.DUPLICATE
    with pytest.raises(FrameError):
        parse(wire(Parcel(sample(), 4_096, False)), epochs)


def test_a_newer_attempt_shuts_out_the_parts_of_an_older_one() -> None:
    epochs = Epochs(most=1)
    epochs.admit(7, 1, 0, 3)
    epochs.admit(7, 2)
    with pytest.raises(FrameError) as late:
        epochs.admit(7, 1, 1, 3)
    assert late.value.reason is Fault.LATE
    epochs.admit(7, 3, 1, 2)
    epochs.admit(8, 0)  # only one request is remembered
    assert not epochs._awaited


def test_parts_that_disagree_are_refused() -> None:
    for other in (Part(7, 1, 3, 3, 6, 100), Part(7, 1, 2, 3, 5, 100), Part(7, 0, 2, 3, 6, 100)):
        parts = Assemblies[str]()
        parts.begin(KEY, Part(7, 0, 2, 0, 6, 100), "a")
        with pytest.raises(FrameError, match="disagrees"):
            parts.begin(KEY, other, "b")
        assert parts.fail(KEY) == ("a",)
        assert parts.fail(KEY) == ()


def test_parts_that_do_not_make_the_whole_are_refused() -> None:
    def piece(blocks: int, size: int) -> IncomingTransfer:
        return IncomingTransfer(*KEY, (memoryview(b""),) * blocks, size, "p1", 0)

    for first, size in ((2, 50), (3, 51)):
        parts = Assemblies[str]()
        for number, begin in ((0, 0), (1, first)):
            part = Part(7, number, 2, begin, 6, 100)
            parts.begin(KEY, part, "a")
            if number == 0:
                assert parts.complete(KEY, part, piece(3, 50)) is None
        with pytest.raises(FrameError):
            parts.complete(KEY, part, piece(3, size))


def test_older_attempts_of_a_request_are_named() -> None:
    parts = Assemblies[str]()
    for request, epoch in ((7, 0), (7, 1), (8, 0)):
        parts.begin((request, epoch), Part(request, 0, 2, 0, 6, 100), "a")
    assert parts.older(7, 1) == ((7, 0),)
    assert parts.older(7, 9) == ((7, 0), (7, 1))


def test_a_part_that_does_not_belong_to_its_header_is_refused() -> None:
    header = frame.Header(7, 1, 3, 1_000, 1, parts=2)
    good = Part(7, 1, 2, 3, 6, 2_000)
    assert decode_part(encode_part(good), header) == good
    for bad in (
        Part(8, 1, 2, 3, 6, 2_000), Part(7, 2, 2, 3, 6, 2_000), Part(7, 1, 3, 3, 6, 2_000),
        Part(7, 1, 2, 4, 6, 2_000), Part(7, 1, 2, 3, 6, 999),
    ):  # fmt: skip
        with pytest.raises(FrameError):
            decode_part(encode_part(bad), header)
    with pytest.raises(FrameError) as caught:
        frame.decode_header(
            frame.encode_header(frame.Header(7, 1, 3, 1_000, 1, parts=frame.MAX_PARTS + 1), ())[
                : frame.HEADER_BYTES
            ]
        )
    assert caught.value.reason is Fault.OVERSIZED
