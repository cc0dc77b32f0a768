"""Metrics of a run small enough to work out by hand.

One pair with a pool of 1, a window from 1 s to 3 s, four requests of 1,000 bytes::

    s        0.5   1.0        2.0        3.0
    r0 (warm-up)  |█████|               |            acquired 0.5, acknowledged 1.5
    r1            |  ░░░███|            |            queued 1.2, acquired 1.5, acked 1.9
    r2            |      ░░░███████     |            queued 1.6, acquired 1.9, acked 2.8
    r3            |              ×      |            failed, never transferred
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pandas
import pytest

from testbed.contract.agent import Request
from testbed.contract.event import EventLog, Kind, Value
from testbed.contract.link import LinkSpec
from testbed.contract.network import End, Link, Network
from testbed.contract.plan import Plan
from testbed.errors import AnalysisError, UsageError
from testbed.metrics import compute, read_events
from testbed.metrics.tail import transfer_rows, write_table
from testbed.oracle import read_outcomes
from testbed.workload import write_requests
from tests.fakes.run_folder import FakeRun, make_plan

MS = 1_000_000
ARRIVALS_MS = (400, 1_100, 1_500, 2_000)


@dataclass(frozen=True, slots=True)
class Told:
    """One event: when (ms), where, what."""

    ms: float
    node: str
    kind: Kind
    size: int
    fields: dict[str, Value]


def told(ms: float, node: str, kind: Kind, size: int = 0, **fields: Value) -> Told:
    return Told(ms, node, kind, size, fields)


def transfer(req: int, queued: int, acquired: int, acked: int) -> list[Told]:
    on: dict[str, Value] = {"req": req, "peer": "md1"}
    return [
        Told(queued, "p1", Kind.POOL_QUEUED, 0, on),
        Told(acquired, "p1", Kind.POOL_ACQUIRED, 0, on),
        Told(acquired, "p1", Kind.TRANSFER_START, 1_000, {**on, "blocks": 2}),
        Told(acked, "p1", Kind.TRANSFER_ACKED, 1_000, on),
        Told(acked, "p1", Kind.POOL_RELEASED, 0, on),
    ]


def answer(req: int, *times_ms: float) -> list[Told]:
    tokens = [told(ms, "c1", Kind.TOKEN, req=req, pos=i) for i, ms in enumerate(times_ms)]
    return [*tokens, told(times_ms[-1], "c1", Kind.REQUEST_DONE, req=req)]


def story() -> list[Told]:
    events = [told(ms, "c1", Kind.REQUEST_SENT, 1_000, req=i) for i, ms in enumerate(ARRIVALS_MS)]
    for req, uncached in enumerate((128, 256, 384)):
        events.append(
            told(450, "p1", Kind.PREFILL_START, req=req, uncached=uncached, context=1024 - uncached)
        )
    events += transfer(0, 500, 500, 1_500)
    events += transfer(1, 1_200, 1_500, 1_900)
    events += transfer(2, 1_600, 1_900, 2_800)
    events += answer(0, 1_600, 1_610)
    events += answer(1, 2_000, 2_010, 2_020)
    events += answer(2, 2_900, 2_910, 3_410)
    events.append(told(2_100, "c1", Kind.REQUEST_FAILED, req=3, reason="queue-full"))
    for ms, size, drops, backlog in (
        (500, 999, 7, 9_999),
        (1_500, 2_000, 1, 30),
        (3_500, 500, 2, 5),
    ):
        events.append(
            told(
                ms,
                "lab",
                Kind.LINK_SAMPLE,
                size,
                link="wan1",
                dir="forward",
                drops=drops,
                backlog=backlog,
                interval_ns=1_000 * MS,
            )
        )
    return events


def link(name: str, kind: str, a: str, b: str, delay_ns: int) -> Link:
    spec = LinkSpec(rate_bps=16_000, delay_ns=delay_ns, buffer_bytes=1_000)
    return Link(
        name=name,
        kind=kind,
        wire="w",
        a=End(node=a, interface="x", wire_device="a0"),
        b=End(node=b, interface="x", wire_device="b0"),
        inner=("i0", "i1"),
        forward=spec,
        backward=spec,
    )


def plan_of(
    requests: tuple[Request, ...], clock: str = "virtual", closed: int | None = None
) -> Plan:
    fake = make_plan(FakeRun(warm_up_s=1, measure_s=2, pool=1), requests)
    network = Network(
        nodes=fake.network.nodes,
        links=(
            link("acc-p1", "fabric", "p1", "tor-a", 2_000),
            link("wan1", "wan", "tor-a", "tor-b", 10 * MS),
            link("wan2", "wan", "tor-a", "tor-b", 30 * MS),
            link("acc-md1", "fabric", "tor-b", "md1", 3_000),
        ),
        routes=(),
        neighbours=(),
    )
    offered = fake.offered.model_copy(update={"legs": 2, "leg_payload_bps": 8_000.0})
    agents = tuple(agent.model_copy(update={"closed_loop": closed}) for agent in fake.agents)
    return fake.model_copy(
        update={"network": network, "offered": offered, "clock": clock, "agents": agents}
    )


class NoClock:
    def now_ns(self) -> int:
        raise RuntimeError("every event carries its time")


def write_run(
    folder: Path, events: list[Told], clock: str = "virtual", closed: int | None = None
) -> Path:
    requests = tuple(
        Request(
            id=i,
            at_ns=0 if closed else ms * MS,
            input_tokens=1_024,
            hit_tokens=768,
            output_tokens=2,
            blocks=2,
            wire_bytes=1_000,
            prefill="p1",
            decode="md1",
        )
        for i, ms in enumerate(ARRIVALS_MS)
    )
    (folder / "events").mkdir(parents=True)
    (folder / "plan.json").write_text(plan_of(requests, clock, closed).model_dump_json())
    write_requests(folder / "workload.jsonl", requests)
    for node in sorted({event.node for event in events}):
        with (folder / "events" / f"{node}.jsonl").open("w") as stream:
            log = EventLog(stream, node, NoClock())
            for event in sorted(events, key=lambda event: event.ms):
                if event.node == node:
                    log.emit(event.kind, event.size, at_ns=int(event.ms * MS), **event.fields)
            log.flush()
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", story())


def figure(metrics: object, path: str) -> object:
    for key in path.split("."):
        assert isinstance(metrics, dict)
        metrics = metrics[key]
    return metrics


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("requests.offered", 3),
        ("requests.completed", 2),
        ("requests.failed", 1),
        ("requests.failed_by_reason", {"queue-full": 1}),
        ("transfer.p50_s", 0.65),  # of 0.4 and 0.9
        ("transfer.p90_s", 0.85),
        ("transfer.mean_s", 0.65),
        ("transfer.bytes", 2_000),
        ("transfer.bytes_by_kind", {"kv": 2_000}),
        ("pool.size", 1),
        ("pool.utilization", 0.9),  # 1.0 to 2.8 of 1.0 to 3.0
        ("pool.exhausted_fraction", 0.3),  # 1.2 to 1.5 and 1.6 to 1.9
        ("pool.queue_wait_mean_s", 0.3),
        ("pool.queue_wait_p99_s", 0.3),
        ("pool.occupancy_mean", 0.9),
        ("pool.occupancy_little", 0.65),  # two acquisitions, 0.4 + 0.9 s, in 2 s
        ("ttft.p50_s", 1.15),  # of 0.9 and 1.4
        ("tpot.p50_s", 0.1325),  # of 0.010 and 0.255
        ("stall.count", 0),  # the gap of 0.5 s is below 5 x 0.1325 s
        ("stall.p50_s", None),
        ("cache.p_hit", 0.6875),  # r1 and r2: (768 + 640) / 2048
        ("cache.md_hit", 0.75),
        ("link.wan1.utilization", 0.4375),  # half a sample, none, half a sample: 1,250 of 4,000 B
        ("link.wan1.drops", 1),
        ("link.wan1.backlog_max_bytes", 30),
        ("link.wan2.utilization", None),
        ("offered_load", 0.75),  # 3,000 B of 4,000 B
        ("handoff.count", None),
        ("goodput_rps", None),
        ("bcr", None),
        ("wall_s", 12.5),
        ("virtual_s", 60.25),
    ],
)
def test_every_figure_is_what_a_hand_calculation_gives(
    run: Path, path: str, expected: object
) -> None:
    metrics = compute(run, wall_s=12.5, virtual_s=60.25)
    if path == "link.wan1.utilization":
        expected = (2_000 * 0.5 + 500 * 0.5) * 8 / (16_000 * 2)
    assert figure(metrics, path) == (
        pytest.approx(expected) if isinstance(expected, float) else expected
    )


def test_the_oracle_is_fed_the_same_arrivals_and_sizes(run: Path) -> None:
    metrics = compute(run)
    rtt_s = 2 * 0.010_005  # the quicker leg and both access links, there and back
    held = 0.5 + rtt_s  # 1,000 bytes at 2,000 bytes a second
    outcomes = {outcome.req: outcome for outcome in read_outcomes(run / "oracle.jsonl")}
    assert outcomes[0].wait_s == 0.0
    assert outcomes[0].duration_s == pytest.approx(held)
    assert outcomes[2].wait_s == pytest.approx(1.2 + held - 1.6)
    assert figure(metrics, "oracle.p50_s") == pytest.approx(held)
    assert figure(metrics, "oracle.queue_wait_mean_s") == pytest.approx((1.2 + held - 1.6) / 2)


def test_metrics_can_be_redone_and_keep_the_times_of_the_run(run: Path) -> None:
    first = compute(run, wall_s=12.5, virtual_s=60.25)
    assert compute(run) == first
    assert json.loads((run / "metrics.json").read_text()) == first
    assert not list(run.glob("*.part"))


def test_the_file_has_exactly_the_names_of_the_contract(run: Path) -> None:
    assert list(compute(run)) == [
        "requests",
        "transfer",
        "pool",
        "ttft",
        "tpot",
        "stall",
        "handoff",
        "cache",
        "rld",
        "goodput_rps",
        "bcr",
        "link",
        "oracle",
        "offered_load",
        "timeline_sha256",
        "wall_s",
        "virtual_s",
    ]


def test_a_stall_is_a_gap_beyond_the_floor_and_five_median_token_times(tmp_path: Path) -> None:
    events = [event for event in story() if event.kind is not Kind.TOKEN]
    events += answer(1, 2_000, 2_010, 2_020, 2_030)[:-1]
    events += answer(2, 2_100, 2_300, 2_501, 2_511)[:-1]  # gaps of 200 (no stall), 201, 10 ms
    metrics = compute(write_run(tmp_path / "run", events))
    # TPOT 10 ms and 137 ms, median 73.5 ms, five times that is 367.5 ms: no stall yet
    assert figure(metrics, "stall.count") == 0
    events += answer(3, 2_000, 2_400)[:-1]  # one more gap, of 400 ms, of a request that failed
    metrics = compute(write_run(tmp_path / "again", events))
    assert figure(metrics, "stall.count") == 1
    assert figure(metrics, "stall.max_s") == pytest.approx(0.4)


def test_a_request_that_nobody_reports_is_failed_and_unreported(tmp_path: Path) -> None:
    events = [event for event in story() if event.kind is not Kind.REQUEST_FAILED]
    metrics = compute(write_run(tmp_path / "run", events))
    assert figure(metrics, "requests.failed_by_reason") == {"unreported": 1}


def test_a_request_both_answered_and_failed_is_failed(tmp_path: Path) -> None:
    events = [*story(), told(3_500, "c1", Kind.REQUEST_FAILED, req=1, reason="digest")]
    metrics = compute(write_run(tmp_path / "run", events))
    assert figure(metrics, "requests.completed") == 1
    assert figure(metrics, "requests.failed") == 2


def test_a_second_attempt_is_timed_from_its_own_acquisition(tmp_path: Path) -> None:
    on: dict[str, Value] = {"req": 3, "peer": "md1"}
    events = [
        *story(),
        Told(2_810, "p1", Kind.POOL_QUEUED, 0, on),
        Told(2_810, "p1", Kind.POOL_ACQUIRED, 0, on),
        Told(2_820, "p1", Kind.POOL_RELEASED, 0, on),
        *transfer(3, 2_830, 2_850, 2_860),
    ]
    rows = {row.req: row for row in transfer_rows(write_run(tmp_path / "run", events))}
    assert rows[3].wait_s == pytest.approx(0.020)
    assert rows[3].duration_s == pytest.approx(0.010)
    assert rows[3].oracle_duration_s is None


def test_a_closed_loop_counts_what_was_sent_in_the_window_and_has_no_load(tmp_path: Path) -> None:
    metrics = compute(write_run(tmp_path / "run", story(), closed=2))
    assert figure(metrics, "requests.offered") == 3
    assert figure(metrics, "offered_load") is None


def test_the_fingerprint_is_the_hash_of_the_sorted_lines(run: Path) -> None:
    lines = [
        json.loads(line)
        for path in (run / "events").iterdir()
        for line in path.read_text().splitlines()
    ]
    lines.sort(key=lambda line: (line["t"], line["node"], line["seq"]))
    text = "".join("{t}\t{node}\t{seq}\t{kind}\t{size}\n".format(**line) for line in lines)
    assert compute(run)["timeline_sha256"] == hashlib.sha256(text.encode()).hexdigest()


def test_a_nanosecond_or_a_byte_changes_the_fingerprint(tmp_path: Path) -> None:
    hashes = set()
    for name, shift, size in (("a", 0.0, 1_000), ("b", 1e-6, 1_000), ("c", 0.0, 1_001)):
        events = [*story(), told(3_600 + shift, "c1", Kind.REQUEST_SENT, size, req=3)]
        hashes.add(compute(write_run(tmp_path / name, events))["timeline_sha256"])
    assert len(hashes) == 3


def test_the_real_clock_has_no_fingerprint(tmp_path: Path) -> None:
    assert compute(write_run(tmp_path / "run", story(), clock="real"))["timeline_sha256"] is None


def test_a_run_without_transfers_has_figures_that_say_so(tmp_path: Path) -> None:
    metrics = compute(write_run(tmp_path / "run", [told(0, "c1", Kind.BARRIER)]))
    assert figure(metrics, "transfer.p50_s") is None
    assert figure(metrics, "oracle.p50_s") is None
    assert figure(metrics, "pool.utilization") == 0.0
    assert figure(metrics, "ttft.p50_s") is None


def test_the_tail_names_who_was_slow(run: Path, tmp_path: Path) -> None:
    rows = transfer_rows(run)
    assert [(row.req, row.in_window) for row in rows] == [(0, False), (1, True), (2, True)]
    assert rows[2].duration_s == pytest.approx(0.9)
    assert rows[2].hit_share == 0.75
    write_table(tmp_path / "tail.csv", rows)
    header, *lines = (tmp_path / "tail.csv").read_text().splitlines()
    assert header.startswith("req,in_window,arrival_s,size_bytes,hit_share")
    assert len(lines) == 3
    write_table(tmp_path / "tail.parquet", rows)
    table = pandas.read_parquet(tmp_path / "tail.parquet")
    assert table["req"].tolist() == [0, 1, 2]
    with pytest.raises(UsageError, match=r"\.csv"):
        write_table(tmp_path / "tail.xlsx", rows)


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (told(1, "c1", Kind.REQUEST_SENT, req=99), "request 99"),
        (told(1, "p1", Kind.TRANSFER_ACKED, req=3, peer="md1"), "never acquired"),
        (told(1, "x9", Kind.POOL_QUEUED, req=3, peer="md1"), "no links between|plan lacks"),
    ],
)
def test_events_that_contradict_the_run_are_refused(
    tmp_path: Path, extra: Told, reason: str
) -> None:
    folder = write_run(tmp_path / "run", [*story(), extra])
    with pytest.raises(AnalysisError, match=reason):
        compute(folder)
    assert not (folder / "metrics.json").exists()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "no JSON object"),
        ('{"t":1,"node":"c1","seq":0,"kind":"tokens","size":0}', "unknown kind 'tokens'"),
        ('{"t":1,"node":"c1","seq":0,"kind":"barrier"}', "'size' is None"),
        ('{"t":1.5,"node":"c1","seq":0,"kind":"barrier","size":0}', "'t' is 1.5"),
        ('{"t":true,"node":"c1","seq":0,"kind":"barrier","size":0}', "'t' is True"),
        ('{"t":1,"node":7,"seq":0,"kind":"barrier","size":0}', "'node' is 7"),
        ('{"t":1,"node":"c1","seq":0,"kind":"token","size":0,"req":1}', "'pos' is None"),
        ('{"t":99999999999999999999,"node":"c","seq":0,"kind":"barrier","size":0}', "64 bits"),
    ],
)
def test_a_wrong_event_line_is_named_with_file_and_line(run: Path, line: str, reason: str) -> None:
    path = run / "events" / "zz.jsonl"
    path.write_text('{"t":1,"node":"zz","seq":0,"kind":"barrier","size":0}\n' + line + "\n")
    with pytest.raises(AnalysisError, match=rf"zz\.jsonl:2.*{reason}"):
        read_events(run)


def test_a_folder_without_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match="holds no"):
        read_events(tmp_path)
