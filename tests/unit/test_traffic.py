"""Background traffic over loopback, and the turns that a seed gives it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.fault import TrafficFault
from testbed.errors import LabError
from testbed.lab.bulk import Bulk, turns
from testbed.lab.namespace import HERE
from testbed.lab.traffic import Stream, Traffic, streams

pytestmark = pytest.mark.unit
MS = 10**6
LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    held = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


@given(st.integers(0, 2**63), st.integers(0, 20))
def test_turns_alternate_and_depend_on_seed_and_flow_alone(seed: int, flow: int) -> None:
    def first(seed: int, flow: int) -> list[tuple[bool, int]]:
        schedule = turns(seed, flow, 5 * MS, 20 * MS)
        return [next(schedule) for _ in range(40)]

    some = first(seed, flow)
    assert some == first(seed, flow)
    assert some not in (first(seed, flow + 1), first(seed + 1, flow))
    assert [sends for sends, _ in some] == [True, False] * 20
    assert all(length > 0 for _, length in some)


def test_bursts_and_gaps_have_the_means_that_were_asked_for() -> None:
    schedule = turns(1, 0, 5 * MS, 20 * MS)
    lengths = [next(schedule)[1] for _ in range(20_000)]
    assert sum(lengths[::2]) / 10_000 == pytest.approx(5 * MS, rel=0.05)
    assert sum(lengths[1::2]) / 10_000 == pytest.approx(20 * MS, rel=0.05)
    assert len(list(turns(1, 0, 0, 0))) == 1


def test_a_flow_sends_in_its_burst_and_all_ends_with_a_reset() -> None:
    reader, writer = os.pipe()
    listener = socket.create_server((LOOPBACK, 0))
    listener.setblocking(False)
    sender = socket.socket()
    sender.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        sender.connect(listener.getsockname())

    def one_burst() -> Iterator[tuple[bool, int]]:
        yield True, 50 * MS
        os.write(writer, b"x")
        yield False, 10**12

    bulk = Bulk(listener, [sender], [one_burst()])
    bulk.run(reader)
    os.close(reader)
    os.close(writer)
    assert bulk.delivered > 0
    assert sender.fileno() == listener.fileno() == -1


def test_its_process_begins_ends_and_leaves_its_ports() -> None:
    target, source = free_ports(2)
    stream = Stream("p1", (LOOPBACK, source), (LOOPBACK, target), 1, 0, 0, 1)
    for _ in range(2):
        traffic = Traffic(stream, HERE, HERE)
        traffic.begin("p1")
        traffic.end("p1")
        assert traffic.delivered() >= 0
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_senders_end_in_any_order() -> None:
    """Each is forked while others are there, and so has their pipes as well."""
    ports = free_ports(4)
    some = [
        Traffic(Stream(name, (LOOPBACK, source), (LOOPBACK, target), 1, 0, 0, 1), HERE, HERE)
        for name, source, target in (("p1", *ports[:2]), ("p2", *ports[2:]))
    ]
    for traffic in some:
        traffic.begin("p1")
    for traffic in some:
        traffic.end("p1")
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_one_that_was_killed_is_told_apart() -> None:
    target, source = free_ports(2)
    traffic = Traffic(Stream("p1", (LOOPBACK, source), (LOOPBACK, target), 1, 0, 0, 1), HERE, HERE)
    traffic.begin("p1")
    os.kill(traffic.pid, signal.SIGKILL)
    with pytest.raises(LabError, match="had ended"):
        traffic.end("p1")


def test_a_socket_that_cannot_be_opened_is_said_at_once() -> None:
    (target,) = free_ports(1)
    stream = Stream("p1", ("192.0.2.1", 61_100), (LOOPBACK, target), 1, 0, 0, 1)
    with pytest.raises(LabError, match="p1"):
        Traffic(stream, HERE, HERE).begin("p1")


def test_each_sender_has_a_stream_of_its_own() -> None:
    fault = TrafficFault(
        name="incast", spans=(), nodes=("p1", "p2"), source_addresses=("10.1.1.2", "10.1.2.2"),
        to="md1", to_address="10.2.1.2", port=7100, source_port=61_000, flows=3, on_ns=0, off_ns=0,
        seed=5,
    )  # fmt: skip
    one, other = streams(fault)
    assert (one.source, one.target) == (("10.1.1.2", 61_000), ("10.2.1.2", 7100))
    assert (other.source, other.target) == (("10.1.2.2", 61_003), ("10.2.1.2", 7101))
    assert one.seed != other.seed
