"""A sender of KV by hand: it says as much of a transfer as a test wants, when it wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from testbed_agents.transport import OutgoingTransfer, frame
from testbed_agents.transport.pieces import Pad, Parcel, parcels_of
from tests.fakes.kv_pair import Pair

WIRE = 100_000
CHUNK = WIRE // 10


def transfer_of(request: int, letter: bytes, epoch: int = 0, blocks: int = 10) -> OutgoingTransfer:
    """Blocks of one letter each, so that whose they are can be seen; a chunk each."""
    return OutgoingTransfer(request, epoch, [letter * 300] * blocks, WIRE * blocks // 10)


def hello(connection: int = 0) -> bytes:
    """What opens a connection."""
    return frame.encode_hello(frame.Hello("p9", "md1", connection, 9, verify_all=False))


def said(parcel: Parcel) -> bytes:
    """All bytes of a parcel."""
    return b"".join(bytes(p.count) if isinstance(p, Pad) else bytes(p) for p in parcel.pieces())


def whole(one: OutgoingTransfer) -> bytes:
    """All bytes of a transfer in one piece."""
    return said(Parcel(one, CHUNK, False))


def parts(one: OutgoingTransfer, count: int, in_turn: bool = False) -> list[bytes]:
    """All bytes of each part of a transfer."""
    return [said(parcel) for parcel in parcels_of(one, CHUNK, False, count, in_turn)]


class Hand:
    """One connection to the receiver of a pair."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self, connection: int = 0) -> Hand:
        """Connect and introduce ourselves."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._pair.port)
        self._writer.write(hello(connection))
        assert (await self.answer()).status is frame.Status.APPLIED
        return self

    async def say(self, data: bytes) -> None:
        """Write; the receiver may have gone."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            return

    async def answer(self) -> frame.Ack:
        """The next answer. Raises IncompleteReadError or ConnectionError where there is none."""
        return frame.decode_ack(await self._reader.readexactly(frame.ACK_BYTES))

    async def close(self) -> None:
        """Say that nothing more will come."""
        self._writer.close()


async def until(what: Callable[[], object]) -> None:
    """Let everybody else work until something holds."""
    while not what():
        await asyncio.sleep(0)
