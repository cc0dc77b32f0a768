"""A KV sender and receiver over real loopback sockets, for tests to play scenes between."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.contract.agent import (
    AgentConfig,
    Hardware,
    ModelConfig,
    Peer,
    Shape,
    Tcp,
    Window,
)
from testbed.contract.defect import Defect
from testbed.contract.event import EventLog
from testbed.contract.guard import UNGUARDED, Guard
from testbed.contract.pool import DisciplineRule, Fifo, Order, Pool
from testbed.contract.role import Role
from testbed.errors import ProtocolError
from testbed_agents.clock import AgentClock, new_loop
from testbed_agents.transport import IncomingTransfer, KvReceiver, KvSender, OutgoingTransfer
from tests.fakes.host_tcp import congestion

LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
STANDING = Fifo()
BLOCKS = [bytes([i]) * 300 for i in range(10)]


def free_ports(count: int, chosen: bool = False) -> int:
    """First of ``count`` consecutive ports that were free a moment ago.

    ``chosen``: within those that the kernel hands out, where connect() can choose them.
    """
    low, high = 21_000, 60_000
    if chosen:
        low, high = map(int, LOCAL_PORTS.read_text("ascii").split())
    for first in range(low + time.time_ns() % ((high - low) // 2), high - count, count):
        sockets: list[socket.socket] = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise OSError("no free ports")


def make_config(
    role: Role,
    pool_size: int | None = 2,
    queue: int = 8,
    verify_all: bool = False,
    timeout_s: float = 20,
    acquire_s: float = 20,
    discipline: DisciplineRule = STANDING,
    order: Order = Order.FIRST_COME,
    stripes: int = 1,
    preempt: bool = False,
    guard: Guard = UNGUARDED,
    defects: tuple[Defect, ...] = (),
) -> Callable[[int], AgentConfig]:
    def at(port: int) -> AgentConfig:
        decode = Peer(
            name="md1", role=Role.DECODE, address="127.0.0.1", control_port=1, data_port=port
        )
        return AgentConfig(
            node="md1" if role is Role.DECODE else "p1",
            role=role,
            seed=0,
            barrier_ns=time.time_ns(),
            window=Window(warm_up_ns=0, measure_ns=1, drain_ns=1),
            address="127.0.0.1",
            control_port=1,
            data_port=port,
            peers=(decode,),
            model=ModelConfig(name="nano"),
            shape=Shape(block_tokens=128, ratio=128, bytes_per_token=10),
            hardware=Hardware(
                name="none",
                source="none",
                prefill_base_s=0,
                prefill_token_s=0,
                prefill_attention_s=0,
                decode_base_s=0,
                decode_sequence_s=0,
                decode_context_s=0,
            ),
            pool=Pool(
                size=pool_size,
                queue=queue,
                acquire_timeout_ns=int(acquire_s * 1e9),
                transfer_timeout_ns=int(timeout_s * 1e9),
                chunk_bytes=65_536,
                source_port=port + 1,
                discipline=discipline,
                order=order,
                stripes=stripes,
                preempt=preempt,
            ),
            tcp=Tcp(
                congestion=congestion(),
                send_buffer=65_536,
                receive_buffer=65_536,
                receive_low_water=8_192,
            ),
            guard=guard,
            defects=defects,
            verify="all" if verify_all else "substance",
            prompt_tokens=128,
            events="-",
        )

    return at


@dataclass
class Pair:
    """A sender and a receiver that keeps what arrives, with their events."""

    port: int
    sender: KvSender
    receiver: KvReceiver
    arrived: list[IncomingTransfer]
    sent_log: EventLog
    received_log: EventLog
    streams: tuple[io.StringIO, io.StringIO]
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """The handler waits for it."""
    refuse: set[int] = field(default_factory=set)

    async def handle(self, transfer: IncomingTransfer) -> None:
        await self.gate.wait()
        if transfer.request in self.refuse:
            raise ProtocolError("apply KV", f"request {transfer.request}", "not announced")
        kept = tuple(memoryview(bytes(block)) for block in transfer.blocks)  # its pages go on
        self.arrived.append(replace(transfer, blocks=kept))

    def events(self, side: int, kind: str) -> list[dict[str, object]]:
        (self.sent_log, self.received_log)[side].flush()
        lines = [json.loads(line) for line in self.streams[side].getvalue().splitlines()]
        return [line for line in lines if line["kind"] == kind]


def run(
    scene: Callable[[Pair], Awaitable[None]],
    pool_size: int | None = 2,
    queue: int = 8,
    verify_all: bool = False,
    timeout_s: float = 20,
    acquire_s: float = 20,
    discipline: DisciplineRule = STANDING,
    order: Order = Order.FIRST_COME,
    stripes: int = 1,
    preempt: bool = False,
    guard: Guard = UNGUARDED,
    defects: tuple[Defect, ...] = (),
) -> None:
    """Plays ``scene`` between an open sender and a serving receiver."""

    async def play() -> None:
        ports = getattr(discipline, "ports", None) or pool_size or 1
        port = free_ports(ports + 1, hasattr(discipline, "ports"))
        streams = (io.StringIO(), io.StringIO())
        configs = [
            make_config(
                role,
                pool_size,
                queue,
                verify_all,
                timeout_s,
                acquire_s,
                discipline,
                order,
                stripes,
                preempt,
                guard,
                defects,
            )(port)
            for role in (Role.PREFILL, Role.DECODE)
        ]
        clock = AgentClock(configs[0].barrier_ns)
        logs = [EventLog(stream, "x", clock) for stream in streams]
        sender = KvSender(configs[0], configs[0].peers[0], clock, logs[0])
        receiver = KvReceiver(configs[1], clock, logs[1])
        pair = Pair(port, sender, receiver, [], logs[0], logs[1], streams)
        pair.gate.set()
        receiver.bind()
        serving = asyncio.create_task(receiver.serve(pair.handle))
        try:
            async with asyncio.timeout(30):
                await sender.open()
                await scene(pair)
        finally:
            await sender.close()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await receiver.close()  # where it never began to serve

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(play())


def transfer(request: int, wire_bytes: int = 2_000_000, epoch: int = 0) -> OutgoingTransfer:
    return OutgoingTransfer(request, epoch, BLOCKS, wire_bytes)
