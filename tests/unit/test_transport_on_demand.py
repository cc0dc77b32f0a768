"""Pools that open on demand, over loopback sockets: what is opened, closed, and refused by name."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from testbed.contract.pool import DisciplineRule, Lanes, Lifo, Order, PerTransfer
from testbed.errors import AgentError, ProtocolError
from testbed_agents.pool import AcquireError, Refusal
from testbed_agents.transport import Fault, OutgoingTransfer, TransferError
from testbed_agents.transport.connection import require_port_choice
from testbed_agents.transport.opening import not_opened
from tests.fakes.kv_pair import BLOCKS, Pair, run, transfer

SMALL = 300_000


def port_choice() -> str:
    """Why this machine cannot run these; empty where it can."""
    try:
        require_port_choice()
    except AgentError as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(port_choice()), reason=port_choice())

ONE_EACH = PerTransfer(ports=4)
STACK = Lifo(ports=4, idle_timeout_ns=60 * 10**9)


def on_demand(
    scene: Callable[[Pair], Awaitable[None]],
    discipline: DisciplineRule,
    size: int | None = None,
    acquire_s: float = 20,
    timeout_s: float = 20,
    order: Order = Order.FIRST_COME,
) -> None:
    run(
        scene, size, discipline=discipline, acquire_s=acquire_s, timeout_s=timeout_s, order=order
    )  # fmt: skip


def closings(pair: Pair) -> list[tuple[object, object]]:
    return [(e["conn"], e["reason"]) for e in pair.events(0, "connection.closed")]


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0)


def test_nothing_is_opened_before_it_is_needed() -> None:
    async def scene(pair: Pair) -> None:
        assert not pair.receiver._inlets
        assert not pair.events(0, "connection.opened")

    for discipline in (ONE_EACH, STACK, Lanes()):
        on_demand(scene, discipline, size=2)


def test_each_transfer_has_its_own_connection_and_the_sender_ends_it_in_order() -> None:
    async def scene(pair: Pair) -> None:
        for request in range(3):
            await pair.sender.send(transfer(request, SMALL))
        await until(lambda: not pair.receiver._inlets)
        assert [one.connection for one in pair.arrived] == [0, 1, 2]
        assert closings(pair) == [(0, "after-use"), (1, "after-use"), (2, "after-use")]
        assert not pair.events(1, "kv.refused")
        assert len(pair.events(0, "tcp.info")) == 3

    on_demand(scene, ONE_EACH)


def test_a_bound_leaves_all_ports_in_use() -> None:
    async def scene(pair: Pair) -> None:
        await asyncio.gather(*(pair.sender.send(transfer(n, SMALL)) for n in range(4)))
        assert sorted(one.connection for one in pair.arrived) == [0, 1, 2, 3]
        assert max(int(str(e["busy"])) for e in pair.events(0, "pool.acquired")) == 2

    on_demand(scene, ONE_EACH, size=2)


def test_a_burst_grows_the_stack_and_behind_it_one_connection_is_enough() -> None:
    async def scene(pair: Pair) -> None:
        await asyncio.gather(*(pair.sender.send(transfer(n, SMALL)) for n in range(3)))
        assert len(pair.receiver._inlets) == 3
        for request in (3, 4):
            await pair.sender.send(transfer(request, SMALL))
        assert len(pair.events(0, "connection.opened")) == 3
        last = [event["conn"] for event in pair.events(0, "pool.acquired")][-2:]
        assert last[0] == last[1]

    on_demand(scene, STACK)


def test_idle_connections_are_closed_after_their_time_and_opened_anew() -> None:
    async def scene(pair: Pair) -> None:
        await pair.sender.send(transfer(1, SMALL))
        await until(lambda: not pair.receiver._inlets)
        assert closings(pair) == [(0, "idle")]
        await pair.sender.send(transfer(2, SMALL))

    on_demand(scene, Lifo(ports=3, idle_timeout_ns=20_000_000))


def test_one_lane_serves_what_comes_one_after_another() -> None:
    async def scene(pair: Pair) -> None:
        for request in range(3):
            await pair.sender.send(transfer(request, SMALL))
        assert len(pair.events(0, "connection.opened")) == 1
        await asyncio.gather(*(pair.sender.send(transfer(n, SMALL)) for n in range(3, 9)))
        assert len(pair.events(0, "connection.opened")) == 2
        assert not closings(pair)

    on_demand(scene, Lanes(), size=2)


def test_a_connection_lost_while_idle_is_replaced_when_it_is_needed() -> None:
    async def scene(pair: Pair) -> None:
        await pair.sender.send(transfer(1, SMALL))
        for inlet in tuple(pair.receiver._inlets):
            inlet.end(None)
        await until(lambda: bool(closings(pair)))
        assert closings(pair) == [(0, "lost")]
        await pair.sender.send(transfer(2, SMALL))

    on_demand(scene, Lanes(), size=1)


def test_a_transfer_that_failed_takes_its_connection_with_it() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        with pytest.raises(TransferError) as caught:
            await pair.sender.send(transfer(1, SMALL))
        assert caught.value.reason is Fault.TIMEOUT
        assert closings(pair) == [(0, "broken")]
        pair.gate.set()
        await pair.sender.send(transfer(2, SMALL))

    on_demand(scene, STACK, timeout_s=0.3)


def test_a_refused_transfer_keeps_its_connection() -> None:
    async def scene(pair: Pair) -> None:
        pair.refuse.add(1)
        with pytest.raises(TransferError, match="not announced"):
            await pair.sender.send(transfer(1, SMALL))
        await pair.sender.send(transfer(2, SMALL))
        assert len(pair.events(0, "connection.opened")) == 1

    on_demand(scene, STACK)


async def refused(pair: Pair, request: int, reason: Refusal) -> None:
    with pytest.raises(AcquireError) as caught:
        await pair.sender.send(transfer(request, SMALL))
    assert caught.value.reason is reason
    assert pair.events(0, "pool.refused")[-1]["reason"] == reason.value
    assert not [e for e in pair.events(0, "transfer.start") if e["req"] == request]


def test_a_source_port_that_is_taken_between_the_two_is_named() -> None:
    async def scene(pair: Pair) -> None:
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", pair.port + 1))
            taken.connect(("127.0.0.1", pair.port))
            await refused(pair, 1, Refusal.NO_PORT)

    on_demand(scene, PerTransfer(ports=1))


def test_a_port_that_rests_in_time_wait_is_named() -> None:
    async def scene(pair: Pair) -> None:
        for request in range(9):  # over loopback Linux gives it back when a second has begun
            try:
                await pair.sender.send(transfer(request, SMALL))
            except AcquireError:
                break
            await until(lambda: not pair.receiver._inlets)
        assert request in (1, 2)
        assert [e["reason"] for e in pair.events(0, "pool.refused")] == ["no-port"]

    on_demand(scene, PerTransfer(ports=1))


def test_a_port_that_was_reset_does_not_rest() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        with pytest.raises(TransferError):
            await pair.sender.send(transfer(1, SMALL))
        pair.gate.set()
        await pair.sender.send(transfer(2, SMALL))

    on_demand(scene, PerTransfer(ports=1), timeout_s=0.2)


def test_a_source_port_that_the_kernel_would_not_give_is_an_error_of_the_set_up() -> None:
    async def scene(pair: Pair) -> None:
        lanes = pair.sender._lanes
        pool = lanes._config.pool.model_copy(update={"source_port": 1_999})
        lanes._config = lanes._config.model_copy(update={"pool": pool})
        with pytest.raises(AgentError, match="ip_local_port_range"):
            await pair.sender.send(transfer(1, SMALL))
        assert pair.sender._gate.state.busy == 0

    on_demand(scene, ONE_EACH)


def test_all_ports_in_use_are_named_too() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        held = asyncio.create_task(pair.sender.send(transfer(1, SMALL)))
        await until(lambda: bool(pair.events(0, "transfer.start")))
        await refused(pair, 2, Refusal.NO_PORT)
        pair.gate.set()
        await held

    on_demand(scene, Lifo(ports=1, idle_timeout_ns=10**9))


def test_running_out_of_descriptors_is_named() -> None:
    async def scene(pair: Pair) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with open(os.devnull) as probe:
            first_free = probe.fileno()
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free, hard))
        try:
            await refused(pair, 1, Refusal.NO_DESCRIPTOR)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await pair.sender.send(transfer(2, SMALL))

    on_demand(scene, ONE_EACH)


def test_nobody_there_and_a_receiver_that_hangs_up_are_refusals() -> None:
    async def scene(pair: Pair) -> None:
        await pair.receiver.close()
        await refused(pair, 1, Refusal.REFUSED)

    on_demand(scene, ONE_EACH)
    lost = TransferError(Fault.CONNECTION_LOST, "md1", "closed by the receiver")
    refusal = not_opened("md1", lost)
    assert refusal is not None
    assert refusal.reason is Refusal.REFUSED


def test_a_receiver_that_does_not_answer_is_a_timeout() -> None:
    async def scene(pair: Pair) -> None:
        await pair.receiver.close()
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            deaf.bind(("127.0.0.1", pair.port))
            deaf.listen()
            await refused(pair, 1, Refusal.TIMEOUT)

    on_demand(scene, ONE_EACH, acquire_s=0.05)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EADDRNOTAVAIL, Refusal.NO_PORT),
        (errno.ENFILE, Refusal.NO_DESCRIPTOR),
        (errno.ECONNREFUSED, Refusal.REFUSED),
        (errno.EHOSTUNREACH, Refusal.UNREACHABLE),
        (errno.ENETUNREACH, Refusal.UNREACHABLE),
        (errno.ETIMEDOUT, Refusal.TIMEOUT),
        (errno.ENOMEM, None),
    ],
)
def test_an_errno_has_one_name_or_is_a_defect(number: int, reason: Refusal | None) -> None:
    refusal = not_opened("md1", OSError(number, os.strerror(number)))
    assert (None if refusal is None else refusal.reason) is reason
    if refusal is not None:
        assert isinstance(refusal, ProtocolError)
        assert os.strerror(number) in refusal.cause


def test_a_defect_is_not_called_a_refusal() -> None:
    async def scene(pair: Pair) -> None:
        async def broken() -> None:
            raise OSError(errno.ENOMEM, "no memory")

        lanes = pair.sender._lanes
        make = lanes._lane

        def lane(connection: int) -> object:
            made = make(connection)
            made.open = broken  # type: ignore[method-assign]
            return made

        lanes._lane = lane  # type: ignore[method-assign, assignment]
        with pytest.raises(OSError, match="no memory"):
            await pair.sender.send(transfer(1, SMALL))
        assert pair.sender._gate.state.busy == 0

    on_demand(scene, ONE_EACH)


@pytest.mark.parametrize(
    ("order", "served"),
    [
        (Order.FIRST_COME, [0, 1, 2, 3]),
        (Order.SMALLEST_FIRST, [0, 3, 2, 1]),
        (Order.EARLIEST_DEADLINE, [0, 2, 3, 1]),
    ],
)
def test_who_waits_is_served_in_the_order_of_the_pool(order: Order, served: list[int]) -> None:
    waiting = ((1, 900_000, 9), (2, 600_000, 7), (3, 300_000, 8))

    async def scene(pair: Pair) -> None:
        send = partial(pair.sender.send)
        pair.gate.clear()
        tasks = [asyncio.create_task(send(transfer(0, SMALL)))]
        await until(lambda: bool(pair.events(0, "transfer.start")))
        tasks += [
            asyncio.create_task(send(OutgoingTransfer(req, 0, BLOCKS, size, due_ns)))
            for req, size, due_ns in waiting
        ]
        await asyncio.sleep(0)
        pair.gate.set()
        await asyncio.gather(*tasks)
        assert [event["req"] for event in pair.events(0, "pool.acquired")] == served

    on_demand(scene, Lanes(), size=1, order=order)
    run(scene, 1, order=order)
