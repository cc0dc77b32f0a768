"""Damaged, cut, stray and stalled bytes on the wire: refused by name, never handled."""

from __future__ import annotations

import asyncio
import io

import pytest

from testbed.contract.agent import Tcp
from testbed.contract.event import EventLog
from testbed.contract.role import Role
from testbed.errors import AgentError
from testbed_agents.clock import AgentClock
from testbed_agents.transport import KvReceiver, OutgoingTransfer, frame
from testbed_agents.transport.pieces import Pad, Parcel
from tests.fakes.kv_pair import Pair, make_config, run, transfer


async def converse(port: int, data: bytes, close: bool = False) -> bytes:
    """Say ``data`` to the receiver by hand and return all that it answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        if close:
            writer.write_eof()
        await writer.drain()
        answer = b""
        while piece := await reader.read(4096):
            answer += piece
        return answer
    except ConnectionResetError:
        return answer
    finally:
        writer.close()


def raw(one: OutgoingTransfer) -> bytes:
    hello = frame.encode_hello(frame.Hello("p9", "md1", 0, 1, verify_all=False))
    pieces = Parcel(one, 65_536, False).pieces()
    return hello + b"".join(bytes(p.count) if isinstance(p, Pad) else bytes(p) for p in pieces)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("hello", "checksum"),
        ("header", "checksum"),
        ("table", "digest"),
        ("substance", "a block is not what was sent"),
        ("cut", "closed within a transfer"),
        ("garbage", "bad-magic"),
    ],
)
def test_damage_on_the_wire_is_refused_and_never_handled(damage: str, reason: str) -> None:
    async def scene(pair: Pair) -> None:
        data = bytearray(raw(transfer(9, 100_000)))
        header = frame.HELLO_BYTES + frame.HEADER_BYTES
        places = {
            "hello": 10,
            "header": header - 20,
            "table": header + 5,
            "substance": header + frame.table_bytes(10) + frame.CHUNK_BYTES + 7,
        }
        if damage == "cut":
            del data[-1_000:]
        elif damage == "garbage":
            data = bytearray(b"GET / HTTP/1.1\r\n\r\n" * 50)
        else:
            data[places[damage]] ^= 0x10
        answer = await converse(pair.port, bytes(data), close=damage == "cut")
        last = frame.decode_ack(answer[-frame.ACK_BYTES :])
        assert last.status is frame.Status.BROKEN
        assert reason in last.reason
        assert pair.arrived == []
        await pair.sender.send(transfer(1))

    run(scene)


def test_bytes_before_the_answer_break_the_connection() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        answer = await converse(pair.port, raw(transfer(9, 100_000)) + b"more")
        assert "before the answer" in frame.decode_ack(answer[-frame.ACK_BYTES :]).reason

    run(scene)


def test_a_silent_connection_is_given_up() -> None:
    async def scene(pair: Pair) -> None:
        answer = await converse(pair.port, raw(transfer(9, 100_000))[:-50])
        assert "in time" in frame.decode_ack(answer[-frame.ACK_BYTES :]).reason

    run(scene, timeout_s=0.3)


def test_a_low_water_mark_that_could_stall_is_refused() -> None:
    config = make_config(Role.DECODE)(7_000)
    tcp = Tcp(send_buffer=65_536, receive_buffer=65_536, receive_low_water=32_769)
    with pytest.raises(AgentError, match="could stall"):
        KvReceiver(
            config.model_copy(update={"tcp": tcp}), AgentClock(0),
            EventLog(io.StringIO(), "md1", AgentClock(0)),
        )  # fmt: skip
