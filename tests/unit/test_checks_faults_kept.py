"""A fault that did not come or go when the plan says makes the run invalid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.checks import judge
from testbed.checks.finding import Finding, Status
from testbed.contract.fault import Down, LinkFault, Span
from testbed.contract.plan import Plan
from testbed.contract.trigger import Trigger
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

pytestmark = pytest.mark.unit
S, MS = 10**9, 10**6
SPANS = (
    Span(begin_ns=1 * S, end_ns=1 * S + 100 * MS),
    Span(begin_ns=2 * S, end_ns=2 * S + 100 * MS),
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    return write_run_folder(folder, FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4))


def finding(run: Path) -> Finding:
    return next(found for found in judge(run).findings if found.check == "faults-kept")


def plan_fault(run: Path, *spans: Span, trigger: Trigger | None = None) -> None:
    path = run / "plan.json"
    plan = Plan.model_validate_json(path.read_bytes())
    fault = LinkFault(
        name="cut", spans=spans, links=("wan1",), forward=True, backward=True, effect=Down(),
        trigger=trigger,
    )  # fmt: skip
    path.write_text(plan.model_copy(update={"faults": (fault,)}).model_dump_json())


def record(run: Path, *moments: tuple[str, int]) -> None:
    path = run / "events" / "lab.jsonl"
    old = [json.loads(line) for line in path.read_text().splitlines()]
    new = [
        {
            "t": t,
            "node": "lab",
            "kind": f"fault.{what}",
            "size": 0,
            "fault": "cut",
            "subject": "wan1",
        }
        for what, t in moments
    ]
    lines = sorted([*old, *new], key=lambda line: line["t"])
    path.write_text("".join(json.dumps({**line, "seq": n}) + "\n" for n, line in enumerate(lines)))


WHERE = {"fault": "cut", "subject": "wan1"}
ALL = (("began", S), ("ended", S + 100 * MS), ("began", 2 * S), ("ended", 2 * S + 100 * MS))


def test_a_plan_without_faults_passes(run: Path) -> None:
    assert finding(run).status is Status.PASS
    assert finding(run).evidence == "the plan has no faults"


def test_all_that_came_and_went_in_time_passes(run: Path) -> None:
    plan_fault(run, *SPANS)
    record(run, *((what, t + 260_000) for what, t in ALL))
    assert finding(run).status is Status.PASS
    assert "at most 0.260 ms late" in finding(run).evidence


@pytest.mark.parametrize("missing", range(4))
def test_what_is_missing_is_invalid(run: Path, missing: int) -> None:
    plan_fault(run, *SPANS)
    record(run, *(one for n, one in enumerate(ALL) if n != missing))
    assert finding(run).status is Status.INVALID


@pytest.mark.parametrize("by_ns", [1_000_001, -1])
def test_what_is_late_or_early_is_invalid(run: Path, by_ns: int) -> None:
    plan_fault(run, *SPANS)
    record(run, (ALL[0][0], ALL[0][1] + by_ns), *ALL[1:])
    found = finding(run)
    assert found.status is Status.INVALID
    assert "cut on wan1 began" in found.violations[0]


def test_one_that_never_comes_because_the_run_is_over_is_invalid(run: Path) -> None:
    plan_fault(run, Span(begin_ns=500 * S))
    found = finding(run)
    assert found.status is Status.INVALID
    assert "never came: the run was over" in found.violations[0]


def test_later_times_of_one_that_came_may_lie_behind_the_end(run: Path) -> None:
    plan_fault(run, *SPANS, Span(begin_ns=500 * S))
    record(run, *ALL)
    assert finding(run).status is Status.PASS
    assert finding(run).evidence.startswith("2 of 3 times")


SEEN = Trigger(sender="p1", receiver="md1", transfer=3, progress=0.4)


def test_a_fault_that_waits_is_measured_from_what_it_waited_for(run: Path) -> None:
    plan_fault(run, Span(begin_ns=100 * MS, end_ns=300 * MS), trigger=SEEN)
    record(
        run, ("reached", 1 * S), ("began", 1_100 * MS + 1_000), ("hit", 1_200 * MS),
        ("ended", 1_300 * MS),
    )  # fmt: skip
    found = finding(run)
    assert found.status is Status.PASS
    assert found.evidence.startswith("1 of 1 times")
    assert found.evidence.endswith("; hits: cut 1")


def test_a_fault_whose_transfer_never_came_makes_the_run_invalid(run: Path) -> None:
    plan_fault(run, Span(begin_ns=0, end_ns=300 * MS), trigger=SEEN)
    found = finding(run)
    assert found.status is Status.INVALID
    assert "transfer 3 from p1 to md1 never had 40% of its bytes on the wire" in str(found)
