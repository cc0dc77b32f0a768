"""What happens on the transfer path without a protection: the damage that it prevents is real."""

from __future__ import annotations

import asyncio
import io
import resource
import socket
import threading

import pytest

from testbed.contract.agent import AgentConfig, Peer
from testbed.contract.defect import Defect
from testbed.contract.event import EventLog
from testbed.contract.pool import Lanes
from testbed.contract.role import Role
from testbed_agents.clock import AgentClock
from testbed_agents.control.mailbox import Mailbox
from testbed_agents.control.message import Failed
from testbed_agents.pool import AcquireError
from testbed_agents.transport import KvReceiver, KvSender
from testbed_agents.transport.bundle import Bundle
from testbed_agents.transport.tcp_info import TcpInfo
from tests.fakes.kv_pair import Pair, free_ports, make_config, run, transfer

pytestmark = pytest.mark.unit


def without(config: AgentConfig, *defects: Defect) -> AgentConfig:
    return config.model_copy(update={"defects": defects})


def weaken(pair: Pair, *defects: Defect) -> None:
    """Both ends do without the protections."""
    for end in (pair.sender, pair.receiver):
        end._config = without(end._config, *defects)


SILENT = TcpInfo(
    rtt_us=0, rttvar_us=0, min_rtt_us=0, cwnd=1, lost=0, total_retrans=0, delivery_bps=0,
    silent_ms=9_000, owed=1,
)  # fmt: skip


@pytest.mark.parametrize("on", [True, False])
def test_a_silent_leg_is_left_only_with_failover(on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed_agents.transport.stall.SILENCE_MS", 20)
    monkeypatch.setattr("testbed_agents.transport.lane.read_tcp_info", lambda _: SILENT)

    async def scene(pair: Pair) -> None:
        defects = () if on else (Defect.LEG_FAILOVER,)
        config = without(pair.sender._config, *defects)
        pair.sender._lanes._failover = Bundle(
            config, config.peers[0], AgentClock(0), lambda _: None
        )._failover
        pair.gate.clear()
        sending = asyncio.create_task(pair.sender.send(transfer(1)))
        done, _ = await asyncio.wait({sending}, timeout=0.5)
        assert bool(pair.events(0, "transfer.failed")) is on
        assert bool(done) is on  # every leg is silent here: it fails by name, or hangs
        if done:
            assert "stalled" in str(sending.exception())
        pair.gate.set()
        await asyncio.wait({sending})

    run(scene)


@pytest.mark.parametrize("on", [True, False])
def test_a_pair_recovers_from_one_failure_only_with_recovery(on: bool) -> None:
    async def scene(pair: Pair) -> None:
        if not on:
            weaken(pair, Defect.PAIR_RECOVERY)
        pair.gate.clear()
        sending = asyncio.create_task(pair.sender.send(transfer(1)))
        while not pair.events(1, "kv.begin"):
            await asyncio.sleep(0.005)
        sending.cancel()  # its connection is reset
        await asyncio.wait({sending})
        pair.gate.set()
        if on:
            assert (await pair.sender.send(transfer(2))).request == 2
        else:
            with pytest.raises(AcquireError, match="closed"):
                await pair.sender.send(transfer(2))

    run(scene)


@pytest.mark.parametrize("on", [True, False])
def test_a_receiver_accepts_again_after_a_shortage_only_with_a_reserve(on: bool) -> None:
    async def scene(pair: Pair) -> None:
        if not on:
            weaken(pair, Defect.DESCRIPTOR_RESERVE)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        loop = asyncio.get_running_loop()
        with socket.socket() as one, socket.socket() as two:
            for each in (one, two):
                each.setblocking(False)
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
            try:
                answered = asyncio.create_task(heard(one, pair.port))
                done, _ = await asyncio.wait({answered}, timeout=0.3)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
            answered.cancel()
            await asyncio.wait({answered})
            await loop.sock_connect(two, ("127.0.0.1", pair.port))
            await asyncio.sleep(0)
            await loop.sock_sendall(two, b"x" * 4096)  # no hello: whoever reads it hangs up
            reading = asyncio.create_task(heard_more(two))
            done, _ = await asyncio.wait({reading}, timeout=0.5)
            assert bool(done) is on
            reading.cancel()
            await asyncio.wait({reading})

    run(scene)


async def heard(connection: socket.socket, port: int) -> bytes:
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, ("127.0.0.1", port))
    return await loop.sock_recv(connection, 1)


async def heard_more(connection: socket.socket) -> bytes:
    try:
        return await asyncio.get_running_loop().sock_recv(connection, 1)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("on", [True, False])
def test_a_sender_without_descriptors_fails_one_transfer_or_as_a_whole(on: bool) -> None:
    port = free_ports(4)
    at = make_config(Role.DECODE, discipline=Lanes())
    receiver_config = at(port)
    config = make_config(Role.PREFILL, discipline=Lanes())(port)
    config = without(config, *(() if on else (Defect.DESCRIPTOR_RESERVE,)))

    async def play() -> None:
        clock = AgentClock(config.barrier_ns)
        log = EventLog(io.StringIO(), "x", clock)
        receiver = KvReceiver(receiver_config, clock, log)
        receiver.bind()

        async def keep(_: object) -> None:
            pass

        serving = asyncio.create_task(receiver.serve(keep))
        sender = KvSender(config, config.peers[0], clock, log)
        await sender.open()
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
        try:
            with pytest.raises(AcquireError if on else OSError) as caught:
                await sender.send(transfer(1))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert ("no-descriptor" in str(caught.value)) is on
        assert (await sender.send(transfer(2))).request == 2
        await sender.close()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(play())


@pytest.mark.parametrize("on", [True, False])
def test_who_takes_nothing_stops_the_sender_only_without_protection(on: bool) -> None:
    port = free_ports(2)
    peer = Peer(
        name="p1", role=Role.PREFILL, address="127.0.0.1", control_port=port + 1, data_port=1
    )
    through = threading.Event()

    async def speak() -> None:
        with Mailbox("rt1", "127.0.0.1", port, [peer], queue=2, waits=not on) as mailbox:
            for number in range(6):
                mailbox.send("p1", Failed(number, "x"))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            through.set()

    speaking = threading.Thread(target=lambda: asyncio.run(speak()))
    speaking.start()
    assert through.wait(0.5) is on
    with Mailbox("p1", "127.0.0.1", port + 1, []) as listening:

        async def listen() -> None:
            async with asyncio.timeout(10):
                while not through.is_set():
                    await asyncio.wait({asyncio.ensure_future(listening.receive())}, timeout=0.1)

        asyncio.run(listen())
    speaking.join(10)
    assert not speaking.is_alive()
