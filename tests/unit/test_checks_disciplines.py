"""Checks and figures of pools that are no semaphore: nothing but what their rule says is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.checks import Status, judge
from testbed.metrics.compute import compute
from testbed.report.study import _facts
from testbed.report.summary import summarize
from tests.fakes.fake_run import FakeRun
from tests.fakes.on_demand import (
    Line,
    change_pool,
    events_of,
    opens_on_demand,
    striped,
    write_events,
)
from tests.fakes.run_folder import write_run_folder

SMALL = FakeRun(rate=20, warm_up_s=1, measure_s=3, drain_s=30, pool=4, load=1.1)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run_folder(tmp_path / "run", SMALL)


def broken(run: Path) -> dict[str, str]:
    return {
        finding.check: " ".join(finding.violations)
        for finding in judge(run).findings
        if finding.status is not Status.PASS
    }


def pool_of(run: Path) -> dict[str, object]:
    compute(run, 1.0, 1.0)
    pool = json.loads((run / "metrics.json").read_text())["pool"]
    assert isinstance(pool, dict)
    return pool


@pytest.mark.parametrize("size", [None, 4])
def test_a_sound_run_with_a_connection_each_passes(run: Path, size: int | None) -> None:
    opens_on_demand(run, size)
    assert broken(run) == {}


def test_a_pool_without_a_bound_has_a_peak_and_no_utilization(run: Path) -> None:
    standing = pool_of(run)
    assert (standing["opened"], standing["open_peak"], standing["closed_by_reason"]) == (
        None, None, {},
    )  # fmt: skip
    opens_on_demand(run)
    pool = pool_of(run)
    for name in ("size", "utilization", "exhausted_fraction"):
        assert pool[name] is None
        assert standing[name] is not None
    for name in ("occupancy_mean", "occupancy_little", "waits", "wait_max_s"):
        assert pool[name] == standing[name]
    begin, end = 10**9, 4 * 10**9
    opened = [
        line
        for line in events_of(run)
        if line["kind"] == "connection.opened" and begin <= int(str(line["t"])) < end
    ]
    assert pool["opened"] == len(opened) > 0
    assert pool["open_peak"] == 4
    assert pool["opening_mean_s"] == 0
    closed = pool["closed_by_reason"]
    assert isinstance(closed, dict)
    assert set(closed) == {"after-use"}


def test_a_bounded_one_is_measured_against_its_bound(run: Path) -> None:
    standing = pool_of(run)
    opens_on_demand(run, 4)
    pool = pool_of(run)
    for name in ("size", "utilization", "exhausted_fraction"):
        assert pool[name] == standing[name]


def test_what_a_report_compares_tells_disciplines_apart(run: Path) -> None:
    assert _facts(summarize(run))["pool"] == "4"
    change_pool(run, order="smallest-first")
    assert _facts(summarize(run))["pool"] == "4 fifo smallest-first"
    opens_on_demand(run)
    summary = summarize(run)
    assert summary.pool_size is None
    assert _facts(summary)["pool"] == "no bound per-transfer smallest-first"


def swapped(lines: list[Line]) -> None:
    """The two that waited first are served the other way round."""
    first, second = [
        line for line in lines if line["kind"] == "pool.acquired" and int(str(line["wait_ns"])) > 0
    ][:2]
    of = {first["req"]: second["req"], second["req"]: first["req"]}
    for line in lines:
        if line["kind"] not in ("pool.queued", "prefill.queued") and line.get("req") in of:
            line["req"] = of[line["req"]]


def test_only_a_first_come_pool_is_asked_for_its_order(run: Path) -> None:
    lines = events_of(run)
    swapped(lines)
    write_events(run, lines)
    assert "acquired before" in broken(run)["pool-first-come"]
    change_pool(run, order="smallest-first")
    assert "pool-first-come" not in broken(run)
    (finding,) = (one for one in judge(run).findings if one.check == "pool-first-come")
    assert finding.evidence == "not applicable: pools are served smallest-first"


def first_of(lines: list[Line], kind: str) -> Line:
    return next(line for line in lines if line["kind"] == kind)


def used_before_open(lines: list[Line]) -> None:
    lines.remove(first_of(lines, "connection.opened"))


def closed_in_use(lines: list[Line]) -> None:
    acquired, closed = first_of(lines, "pool.acquired"), first_of(lines, "connection.closed")
    lines.remove(closed)
    closed |= {"t": acquired["t"], "conn": acquired["conn"]}
    lines.insert(lines.index(acquired) + 1, closed)


def never_closed(lines: list[Line]) -> None:
    lines.remove([line for line in lines if line["kind"] == "connection.closed"][-1])


def opened_twice(lines: list[Line]) -> None:
    lines.remove(first_of(lines, "connection.closed"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (used_before_open, "not open"),
        (closed_in_use, "was closed while request"),
        (never_closed, "was never closed"),
        (opened_twice, "was opened while it was open"),
    ],
)
def test_connections_that_do_not_add_up_are_noticed(
    run: Path, change: Callable[[list[Line]], None], words: str
) -> None:
    opens_on_demand(run)
    lines = events_of(run)
    change(lines)
    write_events(run, lines)
    assert words in broken(run)["pool-bounded"]


def test_an_opening_that_failed_is_a_refusal_and_holds_nothing(run: Path) -> None:
    opens_on_demand(run, 4)
    lines = events_of(run)
    last = max(int(str(line["t"])) for line in lines)
    stop = next(n for n, line in enumerate(lines) if line["kind"] == "agent.stop")
    of = {"t": last, "node": "p1", "seq": 0, "size": 0, "peer": "md1", "req": 0}
    lines[stop:stop] = [
        {**of, "kind": "pool.queued", "busy": 1, "waiting": 0},
        {**of, "kind": "connection.opening", "conn": 9},
        {**of, "kind": "pool.refused", "reason": "no-port"},
    ]
    write_events(run, lines)
    assert "pool-bounded" not in broken(run)
    assert "littles-law" not in broken(run)


def test_a_transfer_over_two_connections_is_one_transfer_and_two_in_use(run: Path) -> None:
    before = pool_of(run)
    striped(run, size=8, apart=4)
    assert broken(run) == {}
    pool = pool_of(run)
    for name in ("waits", "wait_mean_s", "wait_max_s", "utilization"):
        assert pool[name] == before[name]
    assert pool["size"] == 8
    for name in ("occupancy_mean", "occupancy_little"):
        assert pool[name] == pytest.approx(2 * float(str(before[name])))


def test_a_connection_that_two_hold_is_noticed_also_where_one_joined_it(run: Path) -> None:
    striped(run, size=8, apart=1)
    assert "share connection" in broken(run)["pool-bounded"]


def test_who_joins_must_hold_one_and_the_bound_counts_all(run: Path) -> None:
    striped(run, size=7, apart=4)
    assert "8 of 7 connections in use" in broken(run)["pool-bounded"]
    change_pool(run, size=8)
    lines = events_of(run)
    joined = first_of(lines, "pool.joined")
    lines.remove(joined)
    lines.insert(lines.index(first_of(lines, "pool.acquired")), joined)
    write_events(run, lines)
    assert "to none" in broken(run)["pool-bounded"]
