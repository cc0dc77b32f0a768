"""Waits and refusals of a pool that fails, and first tokens of requests that fail later."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.event import Kind, Value
from testbed.metrics import compute
from tests.fakes.hand_run import Told, figure, story, told, write_run


def refused(req: int, reason: str, at: float, queued: float | None = None) -> list[Told]:
    on: dict[str, Value] = {"req": req, "peer": "md1"}
    entered = [] if queued is None else [Told(queued, "p1", Kind.POOL_QUEUED, 0, on)]
    return [*entered, Told(at, "p1", Kind.POOL_REFUSED, 0, {**on, "reason": reason})]


def without_transfers() -> list[Told]:
    """Nothing of the window gets a connection; request 0 of the warm-up holds the only one."""
    kept = {Kind.REQUEST_SENT, Kind.PREFILL_START, Kind.REQUEST_FAILED}
    return [
        event
        for event in story()
        if event.kind in kept or event.fields.get("req") == 0 or event.kind is Kind.LINK_SAMPLE
    ]


@pytest.mark.parametrize("reason", ["timeout", "cancelled", "closed"])
def test_a_wait_counts_however_it_ended(tmp_path: Path, reason: str) -> None:
    events = [
        *without_transfers(),
        *refused(1, reason, 2_200, queued=1_200),
        *refused(2, reason, 1_900, queued=1_600),
    ]
    pool = figure(compute(write_run(tmp_path / "run", events)), "pool")
    assert isinstance(pool, dict)
    assert pool["queue_wait_mean_s"] is None  # no transfer of the window was acknowledged
    assert (pool["waits"], pool["refused"]) == (2, 2)
    assert pool["refused_by_reason"] == {reason: 2}
    assert pool["wait_mean_s"] == pytest.approx(0.65)
    assert pool["wait_p50_s"] == pytest.approx(0.65)
    assert pool["wait_max_s"] == pytest.approx(1.0)


def test_who_never_waited_is_refused_and_no_wait(tmp_path: Path) -> None:
    events = [*story(), *refused(3, "queue-full", 2_050)]
    pool = figure(compute(write_run(tmp_path / "run", events)), "pool")
    assert isinstance(pool, dict)
    assert (pool["waits"], pool["refused_by_reason"]) == (2, {"queue-full": 1})
    assert pool["wait_p99_s"] == pytest.approx(0.3)


def test_a_second_wait_of_one_request_is_one_more(tmp_path: Path) -> None:
    events = [
        *story(),
        *refused(3, "timeout", 2_100, queued=2_000),
        *refused(3, "closed", 2_600, queued=2_200),
    ]
    pool = figure(compute(write_run(tmp_path / "run", events)), "pool")
    assert isinstance(pool, dict)
    assert pool["waits"] == 4
    assert pool["wait_max_s"] == pytest.approx(0.4)
    assert pool["refused_by_reason"] == {"closed": 1, "timeout": 1}


def test_failed_transfers_and_segments_sent_again_are_counted(tmp_path: Path) -> None:
    on: dict[str, Value] = {"req": 2, "peer": "md1"}
    events = [
        *story(),
        Told(2_900, "p1", Kind.TRANSFER_FAILED, 0, {**on, "reason": "timeout"}),
        Told(2_900, "p1", Kind.TCP_INFO, 0, {**on, "retrans": 7}),
        Told(900, "p1", Kind.TCP_INFO, 0, {**on, "req": 0, "retrans": 100}),
    ]
    metrics = compute(write_run(tmp_path / "run", events))
    assert figure(metrics, "transfer.failed") == 1
    assert figure(metrics, "transfer.retransmits") == 7


def test_first_tokens_of_requests_that_failed_later_stand_apart(tmp_path: Path) -> None:
    events = [*story(), told(2_050, "c1", Kind.TOKEN, req=3, pos=0, source="md1")]
    ttft = figure(compute(write_run(tmp_path / "run", events)), "ttft")
    assert isinstance(ttft, dict)
    assert (ttft["requests"], ttft["failed_requests"]) == (2, 1)
    assert ttft["p50_s"] == pytest.approx(1.15)
    assert ttft["failed_p50_s"] == pytest.approx(0.05)


def test_gaps_and_the_threshold_of_a_stall_are_told(tmp_path: Path) -> None:
    metrics = compute(write_run(tmp_path / "run", story()))
    gap = figure(metrics, "gap")
    assert isinstance(gap, dict)
    assert gap["count"] == 4  # 10, 10, 10 and 500 ms
    assert gap["p50_s"] == pytest.approx(0.01)
    assert gap["max_s"] == pytest.approx(0.5)
    assert figure(metrics, "stall.threshold_s") == pytest.approx(5 * 0.1325)


def test_a_link_is_busy_over_the_whole_run_as_well(tmp_path: Path) -> None:
    metrics = compute(write_run(tmp_path / "run", story()))
    # 999 + 2,000 + 500 bytes until 3.5 s, of 2,000 a second
    assert figure(metrics, "link.wan1.run_utilization") == pytest.approx(3_499 / 7_000)
    idle = [event for event in story() if event.kind is not Kind.LINK_SAMPLE]
    idle += [
        Told(ms, "lab", Kind.LINK_SAMPLE, size, {
            "link": "wan1", "dir": "forward", "drops": 0, "backlog": 0, "interval_ns": 10**9,
        })
        for ms, size in ((1_000, 1_000), (9_000, 0))
    ]  # fmt: skip
    metrics = compute(write_run(tmp_path / "idle", idle))
    assert figure(metrics, "link.wan1.run_utilization") == pytest.approx(0.5)
