"""Under a real clock a machine that was late makes the run invalid; a virtual clock waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.checks import judge
from testbed.checks.finding import Finding, Status
from testbed.contract.demand import Demand
from testbed.contract.lateness import bound_ns, bucket_of, quantile_ns
from testbed.contract.plan import Plan
from testbed.metrics.compute import compute
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

pytestmark = pytest.mark.unit

MS = 10**6
DEMAND = Demand(
    superframes_per_s=0, frames_per_s=0, frame_bytes=1514, computing=0, shortest_ns=20 * MS
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    return write_run_folder(folder, FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4))


def nodes(run: Path) -> list[str]:
    return [agent.node for agent in plan_of(run).agents]


def plan_of(run: Path) -> Plan:
    return Plan.model_validate_json((run / "plan.json").read_bytes())


def live(
    run: Path, late_ns: int = MS, waits: int = 1000, steps: int = 100, late_steps: int = 0,
    silent: str = "",
) -> None:  # fmt: skip
    """Make it a run under the real clock, whose agents say how late they were."""
    plan = plan_of(run).model_copy(update={"clock": "real", "demand": DEMAND})
    (run / "plan.json").write_text(plan.model_dump_json())
    for node in nodes(run):
        path = run / "events" / f"{node}.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        tally = {
            "t": lines[-1]["t"], "node": node, "seq": 0, "kind": "clock.tally", "size": 0,
            "waits": {str(bucket_of(late_ns)): waits}, "steps": steps, "late": late_steps,
        }  # fmt: skip
        if node != silent:
            lines.insert(-1, tally)
        for number, line in enumerate(lines):
            line["seq"] = number
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def stolen(run: Path, share: float) -> None:
    line = {
        "t": 10**9, "node": "host", "seq": 0, "kind": "host.sample", "size": 0,
        "steal_ns": round(share * 1e9), "busy_ns": 0, "interval_ns": 10**9,
    }  # fmt: skip
    (run / "events" / "host.jsonl").write_text(json.dumps(line) + "\n")


def on_time(run: Path) -> Finding:
    return next(finding for finding in judge(run).findings if finding.check == "on-time")


def test_a_virtual_clock_has_no_such_question(run: Path) -> None:
    finding = on_time(run)
    assert finding.status is Status.PASS
    assert "not applicable" in finding.evidence


def test_a_machine_in_time_passes_with_its_figures_and_no_fingerprint(run: Path) -> None:
    live(run)
    stolen(run, 0.01)
    finding = on_time(run)
    assert finding.status is Status.PASS, finding
    assert "0 of 300 steps late; P99 of 3000 waits 1.049 ms" in finding.evidence
    assert "1.00% stolen" in finding.evidence
    assert compute(run)["timeline_sha256"] is None


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda run: live(run, late_steps=6), "18 of 300 steps took 5 % longer"),
        (lambda run: live(run, late_ns=7 * MS), "1 % of 3000 waits ended over"),
        (lambda run: live(run, silent="md1"), "md1 never said how late it was"),
        (lambda run: (live(run), stolen(run, 0.06)), "6.0% of the processors' time was stolen"),
        (live, "nobody looked at the processors"),
    ],
)
def test_lateness_makes_the_run_invalid(
    run: Path, spoil: Callable[[Path], object], words: str
) -> None:
    spoil(run)
    finding = on_time(run)
    assert finding.status is Status.INVALID
    assert words in " ".join(finding.violations)
    assert judge(run).verdict is Status.INVALID


def test_only_a_live_run_has_events_of_the_host(run: Path) -> None:
    stolen(run, 0.0)
    finding = next(one for one in judge(run).findings if one.check == "record-complete")
    assert finding.violations == ("host wrote events but is not part of the plan",)
    live(run)
    assert judge(run).verdict is Status.PASS


@given(st.integers(0, 10**12))
def test_a_bucket_holds_what_is_put_into_it(late_ns: int) -> None:
    bucket = bucket_of(late_ns)
    assert late_ns <= bound_ns(bucket) * (1 + 1e-9)
    assert bucket == 0 or late_ns > bound_ns(bucket - 1) * (1 - 1e-9)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_quantile_is_never_below_the_true_one_and_at_most_a_bucket_above(
    late: list[int], share: float
) -> None:
    waits: dict[int, int] = {}
    for one in late:
        waits[bucket_of(one)] = waits.get(bucket_of(one), 0) + 1
    found = quantile_ns(waits, share)
    within = sum(one <= found * (1 + 1e-9) for one in late)
    assert within >= share * len(late)
    assert any(one >= found / 2**0.25 * (1 - 1e-9) for one in late)


def test_nothing_counted_is_nothing_late() -> None:
    assert quantile_ns({}, 0.99) == 0
