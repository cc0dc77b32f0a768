"""The machine around a live run: readings of its processors become events of the record."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from testbed.contract.lateness import BARRIER_FILE
from testbed.contract.scale import Scale
from testbed.run.hostwatch import HostWatch, reading_of

pytestmark = pytest.mark.unit

STAT = "cpu  100 20 30 400 50 6 7 80 90 9\ncpu0 1 2 3 4 5 6 7 8 9 0\n"


def test_a_reading_counts_guests_once_and_theft_apart() -> None:
    reading = reading_of(STAT, 5, 100)
    tick = 10**7
    assert reading.at_ns == 5
    assert reading.total_ns == (100 + 20 + 30 + 400 + 50 + 6 + 7 + 80) * tick
    assert reading.steal_ns == 80 * tick
    assert reading.busy_ns == (100 + 20 + 30 + 6 + 7) * tick


def test_an_old_kernel_tells_of_no_theft() -> None:
    assert reading_of("cpu  1 2 3 4 5 6 7\n", 0, 100).steal_ns == 0


def test_what_was_seen_since_the_barrier_is_written_in_emulated_time(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    watch = HostWatch(every_ns=0)
    (tmp_path / BARRIER_FILE).write_text(str(time.time_ns()))
    for _ in range(3):
        watch.look()
    watch.tell(tmp_path, Scale(slow=2.0))
    lines = (tmp_path / "events" / "host.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    assert [line["kind"] for line in told] == ["host.sample"] * 2
    assert [line["seq"] for line in told] == [0, 1]
    assert 0 <= told[0]["t"] <= told[1]["t"] < 10**10
    assert all(line["interval_ns"] >= line["steal_ns"] >= 0 for line in told)


def test_a_run_without_a_barrier_has_nothing_to_tell(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    watch = HostWatch(every_ns=0)
    watch.look()
    watch.tell(tmp_path, Scale())
    assert not any((tmp_path / "events").iterdir())
