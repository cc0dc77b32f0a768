"""The program of a gate: nothing begins within a stop, nothing is lost, order and rate are kept."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.shaping.gate_program import STATE, program, tag
from testbed.shaping.qdisc import Gate
from tests.fakes.bpf_machine import CONTINUE, Machine

pytestmark = pytest.mark.unit
RATE, DELAY, ANCHOR = 1_250_000_000, 10_000_000, 5_000_000
TSTAMP = 152


def released(gate: Gate, arrivals: list[tuple[int, int]], state: bytearray) -> list[int]:
    """When each frame (time at which it was serialised, bytes) may leave the delay stage's top."""
    code, found = program(gate, 0), []
    for at_ns, size in arrivals:
        machine = Machine(bytearray(size), state, now_ns=at_ns)
        assert machine.run(code) == CONTINUE
        (stamp,) = struct.unpack_from("=Q", machine.context, TSTAMP)
        found.append(stamp - gate.delay_ns if stamp else at_ns)
    return found


def serialised(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Frames as a rate stage lets them go: each no sooner than the one before allows."""
    at_ns, found = ANCHOR - 50_000, []
    for gap_ns, size in gaps:
        at_ns += gap_ns + size * 10**9 // RATE
        found.append((at_ns, size))
    return found


frames = st.lists(st.tuples(st.integers(0, 30_000), st.integers(64, 9_014)), max_size=60)
gates = st.builds(
    Gate, stop_ns=st.integers(10_000, 80_000), each_ns=st.integers(100_000, 300_000),
    rate=st.just(RATE), delay_ns=st.just(DELAY),
)  # fmt: skip


@given(gate=gates, gaps=frames)
def test_no_frame_begins_within_a_stop_and_none_overtakes(
    gate: Gate, gaps: list[tuple[int, int]]
) -> None:
    arrivals = serialised(gaps)
    leaves = released(gate, arrivals, bytearray(STATE.pack(ANCHOR, 0, 0)))
    for (at_ns, size), out_ns in zip(arrivals, leaves, strict=True):
        begins = out_ns - size * 10**9 // RATE
        assert out_ns >= at_ns
        assert begins < ANCHOR or (begins - ANCHOR) % gate.each_ns >= gate.stop_ns
    for before, after, (_, size) in zip(leaves, leaves[1:], arrivals[1:], strict=False):
        assert after - before >= size * 10**9 // RATE, "no faster than the link"


@given(gaps=frames)
def test_an_open_gate_changes_nothing(gaps: list[tuple[int, int]]) -> None:
    gate = Gate(stop_ns=0, each_ns=0, rate=RATE, delay_ns=DELAY)
    arrivals, state = serialised(gaps), bytearray(STATE.pack(ANCHOR, 0, 0))
    assert released(gate, arrivals, state) == [at_ns for at_ns, _ in arrivals]
    assert STATE.unpack(state) == (ANCHOR, 0, 0)


def test_what_was_held_keeps_its_turn_when_the_gate_opens() -> None:
    state = bytearray(STATE.pack(0, 0, 0))
    stops = Gate(stop_ns=50_000, each_ns=100_000, rate=RATE, delay_ns=DELAY)
    opened = Gate(stop_ns=0, each_ns=0, rate=RATE, delay_ns=DELAY)
    first = released(stops, [(10_000, 1_250), (11_000, 1_250)], state)
    then = released(opened, [(12_000, 1_250), (60_000, 1_250)], state)
    assert first == [51_000, 52_000]
    assert then == [53_000, 60_000]
    assert STATE.unpack(state)[2] == 3, "frames held"


def test_without_a_rate_frames_leave_together() -> None:
    gate = Gate(stop_ns=50_000, each_ns=100_000, rate=0, delay_ns=DELAY)
    state = bytearray(STATE.pack(0, 0, 0))
    assert released(gate, [(10_000, 9_000), (20_000, 9_000)], state) == [50_000, 50_000]


def test_the_tag_tells_stops_apart() -> None:
    one = Gate(stop_ns=50_000, each_ns=100_000, rate=RATE, delay_ns=DELAY)
    assert tag(one) != tag(Gate(stop_ns=50_001, each_ns=100_000, rate=RATE, delay_ns=DELAY))
