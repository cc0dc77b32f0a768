"""A transfer whose leg is down goes over another connection, and is applied once."""

from __future__ import annotations

import asyncio
import resource
import socket

import pytest

from testbed.contract.pool import Lanes
from testbed.errors import TestbedError
from testbed_agents.pool import AcquireError
from testbed_agents.transport import Fault, TransferError
from testbed_agents.transport.applied import Applied
from testbed_agents.transport.sender import LEGS_TRIED
from testbed_agents.transport.spare import SpareDescriptor
from testbed_agents.transport.transfer import INCREMENT, IncomingTransfer
from tests.fakes.kv_pair import Pair, run, transfer

pytestmark = pytest.mark.unit


def stalls(pair: Pair, connection: int) -> None:
    """The watch has seen that nothing is heard over a connection."""
    pair.sender._lanes[connection].stalled(1_000)


async def until_begun(pair: Pair, times: int) -> None:
    async with asyncio.timeout(10):
        while len(pair.events(1, "kv.begin")) < times:
            await asyncio.sleep(0.005)


def test_it_arrives_over_another_connection_and_once() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()  # applied, but the acknowledgement does not come through
        told: list[int] = []
        pair.sender.held_up = told.append
        sending = asyncio.create_task(pair.sender.send(transfer(7)))
        await until_begun(pair, 1)
        stalls(pair, 0)
        await until_begun(pair, 2)
        pair.gate.set()
        receipt = await sending
        assert receipt.connection == 1
        assert [one.request for one in pair.arrived] == [7]
        assert told == [7]
        (failed,) = pair.events(0, "transfer.failed")
        assert str(failed["reason"]).startswith("stalled: ")
        assert len(pair.events(1, "kv.verified")) == 1
        again = await pair.sender.send(transfer(8))  # the leg is back, and so is its connection
        assert again.request == 8

    run(scene)


def test_it_is_tried_over_so_many_and_then_fails_by_name() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        sending = asyncio.create_task(pair.sender.send(transfer(7)))
        for attempt in range(LEGS_TRIED):
            await until_begun(pair, attempt + 1)
            stalls(pair, attempt % 2)
        with pytest.raises(TransferError) as caught:
            await sending
        assert caught.value.reason is Fault.STALLED
        assert len(pair.events(0, "transfer.start")) == LEGS_TRIED
        pair.gate.set()
        assert (await pair.sender.send(transfer(8))).request == 8

    run(scene)


def test_a_pool_that_was_closed_opens_anew() -> None:
    async def scene(pair: Pair) -> None:
        await pair.sender.send(transfer(1))
        await pair.sender.close()
        with pytest.raises(AcquireError):
            await pair.sender.send(transfer(2))
        pair.sender.reopen()
        pair.sender.reopen()
        assert (await pair.sender.send(transfer(3))).request == 3
        assert [one.request for one in pair.arrived] == [1, 3]

    run(scene)


async def heard(connection: socket.socket, port: int) -> bytes:
    """What the receiver says to who only connects."""
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, ("127.0.0.1", port))
    return await loop.sock_recv(connection, 1)


def incoming(request: int, epoch: int) -> IncomingTransfer:
    return IncomingTransfer(request, epoch, (), 1, "p1", 0)


def test_what_was_applied_is_not_applied_again_but_what_was_refused_may_be() -> None:
    async def play() -> None:
        applied = Applied(most=2)
        assert applied.begin(incoming(1, 0)) is None
        same = applied.begin(incoming(1, 1))
        assert same is not None
        assert not same.done()
        applied.end(incoming(1, 0), "")
        assert same.result() == ""
        assert applied.begin(incoming(1, 2)) is same
        assert applied.begin(incoming(1, INCREMENT)) is None  # it follows the prompt
        applied.end(incoming(1, INCREMENT), "no room")
        assert applied.begin(incoming(1, INCREMENT + 1)) is None
        assert applied.begin(incoming(2, 0)) is None  # of three the oldest is forgotten
        assert applied.begin(incoming(1, 3)) is None

    asyncio.run(play())


def test_without_descriptors_a_connection_is_refused_and_the_others_go_on() -> None:
    async def scene(pair: Pair) -> None:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        other = socket.socket()
        other.setblocking(False)
        resource.setrlimit(resource.RLIMIT_NOFILE, (other.fileno() + 1, before[1]))
        try:
            while True:  # the numbers below it are taken, too
                try:
                    kept.append(socket.socket())
                except OSError:
                    break
            with pytest.raises(ConnectionResetError):
                await heard(other, pair.port)
            assert (await pair.sender.send(transfer(1))).request == 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            other.close()
            for one in kept:
                one.close()

    kept: list[socket.socket] = []
    run(scene)


def test_where_the_spare_one_does_not_help_that_is_said() -> None:
    spare = SpareDescriptor()
    spare.take()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        assert spare.turn_away(listener)  # nobody waits
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
        try:
            assert not spare.turn_away(listener)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    spare.give_back()
    spare.give_back()


def test_transfer_errors_name_their_reason() -> None:
    error: TestbedError = TransferError(Fault.STALLED, "md1", "nothing heard for 1000 ms")
    assert "stalled: nothing heard" in str(error)


@pytest.mark.parametrize("on", [True, False])
def test_a_connection_that_nobody_answers_is_opened_over_another_port(
    on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed_agents.pool.opening.ANSWER_NS", 50_000_000)

    async def scene(pair: Pair) -> None:
        pair.sender._failover = on
        lanes = pair.sender._lanes
        opened = lanes.open
        tried: list[int] = []

        async def open_(connection: int) -> None:
            tried.append(connection)
            if connection % 2 == 0:
                await asyncio.Event().wait()  # its leg is down
            await opened(connection)

        monkeypatch.setattr(lanes, "open", open_)
        if on:
            assert (await pair.sender.send(transfer(1))).connection == 1
            assert tried == [0, 1]
            (refused,) = pair.events(0, "pool.refused")
            assert refused["reason"] == "unanswered"
        else:
            with pytest.raises(AcquireError, match="timeout"):
                await pair.sender.send(transfer(1))
            assert tried == [0]

    run(scene, discipline=Lanes(), acquire_s=1)
