"""Makes the prefill agents of a run damage what they send (see ../../test_corruption.py).

Python imports this module at start where it lies on PYTHONPATH. It changes the process
that agents are forked from and nothing else: the row of pieces of a transfer is the wire,
and everything behind it (sockets, TCP, receiver, control messages, client) is real.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator


def _damage() -> None:
    from dataclasses import replace

    from testbed_agents.transport import frame
    from testbed_agents.transport import sender as sending
    from testbed_agents.transport.pieces import Pad, Parcel, Piece
    from testbed_agents.transport.transfer import OutgoingTransfer

    def flipped(piece: Piece, at: int) -> bytes:
        data = bytearray(piece) if not isinstance(piece, Pad) else bytearray(piece.count)
        data[at] ^= 0x04
        return bytes(data)

    def header(pieces: list[Piece]) -> Iterator[Piece]:
        yield from (flipped(pieces[0], frame.HEADER_BYTES // 2), *pieces[1:])

    def substance(pieces: list[Piece]) -> Iterator[Piece]:
        yield from (flipped(pieces[0], -9), *pieces[1:])

    def stamp(pieces: list[Piece]) -> Iterator[Piece]:
        yield from (*pieces[:-1], flipped(pieces[-1], 3))

    def shortened(pieces: list[Piece]) -> Iterator[Piece]:
        # a kibibyte of padding is missing: all that follows lies where it should not
        first, pad = next((i, one) for i, one in enumerate(pieces) if isinstance(one, Pad))
        yield from (*pieces[:first], Pad(pad.count - 1024), *pieces[first + 1 :])

    def cut(pieces: list[Piece]) -> Iterator[Piece]:
        yield from pieces[: len(pieces) // 2]
        raise ConnectionResetError("the line was cut within a transfer")

    ways: dict[int, Callable[[list[Piece]], Iterator[Piece]]] = {
        1: header, 2: substance, 3: stamp, 4: shortened, 5: cut,
    }  # fmt: skip
    plain = Parcel.pieces

    def pieces(self: Parcel, gaps: bool = False) -> Iterator[Piece]:
        way = ways.get(self._transfer.request)
        rest = list(plain(self, gaps))
        yield from rest if way is None else way(rest)

    def parcel(transfer: OutgoingTransfer, chunk_bytes: int, verify_all: bool) -> Parcel:
        if transfer.request == 6:  # the name and epoch of request 0, which was applied long ago
            transfer = replace(transfer, request=0)
        if transfer.request == 7:  # well framed, but the blocks are in the wrong order
            transfer = replace(transfer, blocks=transfer.blocks[::-1])
        return Parcel(transfer, chunk_bytes, verify_all)

    Parcel.pieces = pieces  # type: ignore[method-assign]
    sending.Parcel = parcel  # type: ignore[assignment,attr-defined]


if "testbed_agents.zygote" in sys.orig_argv:
    _damage()
