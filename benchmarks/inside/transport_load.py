"""The transport alone under the load of the pool study: no models, no control messages.

Runs once in the receiver's node and once in the sender's, inside a lab or on one host::

    python transport_load.py receive --address 10.2.0.2 --folder /tmp
    python transport_load.py send --address 10.1.0.2 --peer 10.2.0.2 --folder /tmp

The sender prints one JSON line; wall time and CPU time are those of the caller to take.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
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
from testbed.contract.event import EventLog
from testbed.contract.pool import Pool
from testbed.contract.role import Role
from testbed_agents.clock import AgentClock, new_loop
from testbed_agents.pool import AcquireError
from testbed_agents.transport import IncomingTransfer, KvReceiver, KvSender, OutgoingTransfer

BLOCK_TOKENS = 128
INPUT_TOKENS = 65_536
MIB = 1024 * 1024


def configuration(options: argparse.Namespace) -> AgentConfig:
    """The agent's configuration of this role, with only the transport's fields of weight."""
    sending = options.role == "send"
    decode = Peer(
        name="md1", role=Role.DECODE, address=options.peer or options.address,
        control_port=6000, data_port=6001,
    )  # fmt: skip
    return AgentConfig(
        node="p1" if sending else "md1",
        role=Role.PREFILL if sending else Role.DECODE,
        seed=options.seed, barrier_ns=time.time_ns(), address=options.address,
        window=Window(warm_up_ns=0, measure_ns=int(options.seconds * 1e9), drain_ns=10**11),
        control_port=6000, data_port=6001, peers=(decode,),
        model=ModelConfig(name="nano"),
        shape=Shape(block_tokens=BLOCK_TOKENS, ratio=128, bytes_per_token=options.token_bytes),
        hardware=Hardware(
            name="none", source="none", prefill_base_s=0, prefill_token_s=0,
            prefill_attention_s=0, decode_base_s=0, decode_sequence_s=0, decode_context_s=0,
        ),
        pool=Pool(
            size=options.pool, queue=100_000, acquire_timeout_ns=10**11,
            transfer_timeout_ns=10**11, chunk_bytes=options.chunk, source_port=20_000,
        ),
        tcp=Tcp(
            send_buffer=options.buffer, receive_buffer=options.buffer,
            receive_low_water=options.low_water,
        ),
        verify=options.verify, prompt_tokens=INPUT_TOKENS,
        events=str(Path(options.folder) / f"{options.role}.jsonl"),
    )  # fmt: skip


async def receive(config: AgentConfig, log: EventLog, options: argparse.Namespace) -> None:
    """Acknowledges every verified transfer until ``--count`` have arrived."""
    done = asyncio.Event()
    seen = 0

    async def apply(transfer: IncomingTransfer) -> None:
        nonlocal seen
        seen += 1
        if options.count and seen == options.count:
            done.set()

    receiver = KvReceiver(config, AgentClock(config.barrier_ns), log)
    serving = asyncio.create_task(receiver.serve(apply))
    await done.wait()
    await asyncio.sleep(1)
    serving.cancel()


async def send(config: AgentConfig, log: EventLog, options: argparse.Namespace) -> None:
    """Poisson arrivals, hit rates as in the pool study; prints what it measured."""
    draw = random.Random(options.seed)
    clock = AgentClock(config.barrier_ns)
    sender = KvSender(config, config.peers[0], clock, log)
    await sender.open()
    begin_ns = clock.now_ns()
    durations: list[int] = []
    waits: list[int] = []
    sent = 0

    async def one(request: int, blocks: int) -> None:
        nonlocal sent
        size = options.size or blocks * BLOCK_TOKENS * options.token_bytes
        substance = [draw.randbytes(options.substance) for _ in range(blocks)]
        try:
            receipt = await sender.send(OutgoingTransfer(request, 0, substance, size))
        except AcquireError:
            return
        durations.append(receipt.duration_ns)
        waits.append(receipt.wait_ns)
        sent += receipt.wire_bytes

    at_s = 0.0
    async with asyncio.TaskGroup() as group:
        for request in range(options.count):
            at_s += draw.expovariate(options.rate)
            if options.hits == "wide":
                hit = 0.02 + 0.97 * draw.betavariate(0.788, 0.081)
            else:
                hit = draw.uniform(0.85, 0.95)
            blocks = max(1, round(INPUT_TOKENS * (1 - hit)) // BLOCK_TOKENS)
            await clock.until(begin_ns + int(at_s * 1e9))
            group.create_task(one(request, blocks))
    spent_s = (clock.now_ns() - begin_ns) / 1e9
    await sender.close()
    durations.sort()
    result = {
        "transfers": len(durations), "gbit": sent * 8 / 1e9, "virtual_s": spent_s,
        "gbps": sent * 8 / 1e9 / spent_s,
        "p50_s": durations[len(durations) // 2] / 1e9,
        "p99_s": durations[len(durations) * 99 // 100] / 1e9,
        "wait_mean_s": sum(waits) / len(waits) / 1e9, "wait_max_s": max(waits) / 1e9,
    }  # fmt: skip
    print(json.dumps(result), flush=True)


def main() -> None:
    """Reads the options and runs one role."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("receive", "send"))
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--peer")
    parser.add_argument("--folder", default="/tmp")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=800)
    parser.add_argument("--rate", type=float, default=80.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--hits", choices=("wide", "narrow"), default="wide")
    parser.add_argument("--size", type=int, default=0, help="bytes of every transfer")
    parser.add_argument("--token-bytes", type=int, default=4768)
    parser.add_argument("--substance", type=int, default=1024, help="bytes a block")
    parser.add_argument("--pool", type=int, default=160)
    parser.add_argument("--chunk", type=int, default=2 * MIB)
    parser.add_argument("--buffer", type=int, default=32 * MIB)
    parser.add_argument("--low-water", type=int, default=MIB)
    parser.add_argument("--verify", choices=("substance", "all"), default="substance")
    options = parser.parse_args()
    config = configuration(options)
    with open(config.events, "w", encoding="utf-8") as stream:
        log = EventLog(stream, config.node, AgentClock(config.barrier_ns))
        work = receive if options.role == "receive" else send
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(work(config, log, options))
        log.flush()


if __name__ == "__main__":
    main()
