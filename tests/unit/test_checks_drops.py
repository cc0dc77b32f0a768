"""Packets lost under a fault are the fault's; those that nothing explains are remarked on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.checks import judge
from testbed.checks.finding import Finding
from testbed.contract.fault import Down, LinkFault, PlannedFault, Span
from testbed.contract.plan import Plan
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

pytestmark = pytest.mark.unit
S, MS = 10**9, 10**6


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    return write_run_folder(folder, FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4))


def finding(run: Path) -> Finding:
    return next(found for found in judge(run).findings if found.check == "drops-explained")


def fault(name: str, link: str = "wan1", backward: bool = True) -> LinkFault:
    return LinkFault(
        name=name, spans=(Span(begin_ns=S, end_ns=S + 150 * MS),), links=(link,), forward=True,
        backward=backward, effect=Down(),
    )  # fmt: skip


def record(
    run: Path, faults: tuple[PlannedFault, ...], moments: tuple[tuple[int, str, str, str], ...],
    samples: tuple[tuple[int, str, str, int, int], ...],
) -> None:  # fmt: skip
    """``moments``: when, began or ended, fault, link; ``samples``: when, link, direction, drops,
    lost, each over 100 ms. The lab's samples of the run give way to them."""
    path = run / "plan.json"
    plan = Plan.model_validate_json(path.read_bytes())
    path.write_text(plan.model_copy(update={"faults": faults}).model_dump_json())
    path = run / "events" / "lab.jsonl"
    lines: list[dict[str, object]] = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [line for line in lines if line["kind"] != "link.sample"]
    for t, what, name, link in moments:
        lines.append({"t": t, "kind": f"fault.{what}", "fault": name, "subject": link})
    for t, link, direction, drops, lost in samples:
        lines.append(
            {
                "t": t, "kind": "link.sample", "link": link, "dir": direction, "packets": 100,
                "drops": drops, "lost": lost, "backlog": 0, "interval_ns": 100 * MS,
            }
        )  # fmt: skip
    lines.sort(key=lambda line: (line["kind"] == "agent.stop", line["t"]))
    fixed: dict[str, object] = {"node": "lab", "size": 0}
    path.write_text(
        "".join(json.dumps({**fixed, **line, "seq": n}) + "\n" for n, line in enumerate(lines))
    )


CUT = ((S, "began", "cut", "wan1"), (S + 150 * MS, "ended", "cut", "wan1"))


def test_what_a_fault_lost_bears_its_name_and_is_no_remark(run: Path) -> None:
    samples = ((S + 100 * MS, "wan1", "forward", 7, 2), (S + 200 * MS, "wan1", "backward", 0, 3))
    record(run, (fault("cut"),), CUT, samples)
    assert finding(run).violations == ()
    assert finding(run).evidence.endswith("while faults were in force: cut 12")


@pytest.mark.parametrize(
    "sample",
    [
        (S, "wan1", "forward", 7, 0),
        (S + 300 * MS, "wan1", "forward", 7, 0),
        (S + 100 * MS, "wan2", "forward", 7, 0),
    ],
    ids=["before it", "after it", "another link"],
)
def test_what_was_lost_elsewhere_or_at_another_time_is_remarked_on(
    run: Path, sample: tuple[int, str, str, int, int]
) -> None:
    record(run, (fault("cut"),), CUT, (sample,))
    (remark,) = finding(run).violations
    assert remark.startswith(f"{sample[1]} forward: 7 dropped by a full buffer")


def test_a_fault_of_one_direction_explains_nothing_in_the_other(run: Path) -> None:
    record(run, (fault("cut", backward=False),), CUT, ((S + 100 * MS, "wan1", "backward", 7, 0),))
    assert len(finding(run).violations) == 1


def test_one_that_stays_is_in_force_to_the_end(run: Path) -> None:
    record(run, (fault("cut"),), CUT[:1], ((2 * S, "wan1", "forward", 4, 0),))
    assert finding(run).violations == ()


def test_loss_without_a_model_or_a_fault_is_remarked_on(run: Path) -> None:
    record(run, (), (), ((S, "wan1", "forward", 0, 5),))
    (remark,) = finding(run).violations
    assert remark == (
        "wan1 forward: 5 lost behind the buffer, 4.76e-02 of what was sent, with no fault in force"
    )
