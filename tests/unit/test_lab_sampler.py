"""Samples of links, and what is noted between them: in order, and counted from where it began."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from testbed.contract.event import Kind
from testbed.lab.sampler import Sampler
from testbed.lab.tc.counters import DirectionCounters, LinkCounters

pytestmark = pytest.mark.unit
NONE = DirectionCounters(0, 0, 0, 0, 0, 0)


class CountedWires:
    """One link, whose forward direction has passed so many bytes; None: its wire is away."""

    passed: int | None = 0

    def counters(self) -> dict[str, LinkCounters]:
        if self.passed is None:
            return {}
        forward = DirectionCounters(self.passed, self.passed // 100, 0, 0, 0, 0)
        return {"wan1": LinkCounters(forward, NONE)}


def sampled(path: Path) -> list[tuple[int, int]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(one["size"], one["interval_ns"]) for one in lines if one["kind"] == "link.sample"]


def test_bytes_are_counted_from_nothing_once_a_wire_is_another_one(tmp_path: Path) -> None:
    wires, path = CountedWires(), tmp_path / "lab.jsonl"
    with Sampler(wires, path, time.time_ns() + 10**12) as sampler:  # type: ignore[arg-type]
        wires.passed = 1000
        sampler.sample(100)
        wires.passed = None
        sampler.sample(200)
        wires.passed = 300
        sampler.renew(["wan1"])
        sampler.sample(300)
        wires.passed = 500
        sampler.renew(["wan1"])
        sampler.sample(400)
    assert sampled(path) == [(1000, 100), (300, 100), (500, 100)]


def test_a_sample_that_comes_late_is_not_earlier_than_what_was_noted(tmp_path: Path) -> None:
    wires, path = CountedWires(), tmp_path / "lab.jsonl"
    with Sampler(wires, path, time.time_ns() - 10**10) as sampler:  # type: ignore[arg-type]
        noted = sampler.note(Kind.FAULT_BEGAN, fault="pause", subject="p1")
        wires.passed = 100
        sampler.sample(5)
        wires.passed = 200
        sampler.sample_now()
        wires.passed = 300
        sampler.sample(6)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    times = [one["t"] for one in lines]
    assert noted > 10**10
    assert times == sorted(times)
    assert [one["seq"] for one in lines] == list(range(len(lines)))
    assert [size for size, _ in sampled(path)] == [100, 100, 100]
