"""A finished run of the same plan is taken over; any other folder is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.checks.finding import Status
from testbed.checks.verdict import Verdict, write_verdict
from testbed.errors import UsageError
from testbed.lab.guest.snapshot import code_digest
from testbed.reproduce.hold import held
from testbed.reproduce.resume import claim_folder, free_place, place_of, take_over
from testbed.run.folder import make_folder, write_inputs, write_json
from testbed.run.mark import mark_unfinished
from testbed.run.prepare import Prepared, prepare

STAMP = {"guest_code": "a", "kernel": "b"}


@pytest.fixture(scope="module")
def plan() -> Prepared:
    return prepare("hello", seed=1)


def written(folder: Path, plan: Prepared, finished: bool = True) -> None:
    make_folder(folder)
    write_inputs(folder, plan.scenario.resolved_yaml(), plan.plan, plan.requests, {})
    if finished:
        (folder / "metrics.json").write_text("{}")


def test_a_new_run_gets_its_own_folder(tmp_path: Path, plan: Prepared) -> None:
    assert place_of(tmp_path, "a-s1", plan) == (tmp_path / "a-s1", False)


def test_a_finished_run_of_the_same_plan_is_found(tmp_path: Path, plan: Prepared) -> None:
    written(tmp_path / "a-s1", plan)
    assert place_of(tmp_path, "a-s1", plan) == (tmp_path / "a-s1", True)


def test_facts_of_the_host_do_not_matter(tmp_path: Path, plan: Prepared) -> None:
    guest = plan.plan.guest.model_copy(update={"memory_bytes": 2**33})
    estimate = plan.plan.estimate.model_copy(update={"wall_s": 1.0})
    other = plan.plan.model_copy(update={"guest": guest, "estimate": estimate})
    written(tmp_path / "a-s1", Prepared(plan.scenario, other, plan.requests, None))
    assert place_of(tmp_path, "a-s1", plan)[1]


@pytest.mark.parametrize("override", ["links.wan.rtt=21 ms", "seed=2", "expect.verdict=fail"])
def test_a_run_of_another_plan_is_refused(tmp_path: Path, plan: Prepared, override: str) -> None:
    written(tmp_path / "a-s1", prepare("hello", (override,)))
    with pytest.raises(UsageError, match="another plan"):
        place_of(tmp_path, "a-s1", plan)


def test_other_requests_are_refused(tmp_path: Path, plan: Prepared) -> None:
    written(tmp_path / "a-s1", plan)
    (tmp_path / "a-s1" / "workload.jsonl").write_text("")
    with pytest.raises(UsageError, match="another plan"):
        place_of(tmp_path, "a-s1", plan)


def test_an_interrupted_run_stays_and_the_next_gets_a_number(
    tmp_path: Path, plan: Prepared
) -> None:
    written(tmp_path / "a-s1", plan, finished=False)
    mark_unfinished(tmp_path / "a-s1", KeyboardInterrupt())
    assert place_of(tmp_path, "a-s1", plan) == (tmp_path / "a-s1-2", False)


@pytest.mark.parametrize(
    "missing",
    [
        ("scenario.yaml", "plan.json", "workload.jsonl", "provenance.json"),
        ("plan.json", "workload.jsonl", "provenance.json"),
        ("provenance.json",),
        ("workload.jsonl",),
    ],
)
def test_a_run_killed_before_its_inputs_were_written_is_an_interrupted_one(
    tmp_path: Path, plan: Prepared, missing: tuple[str, ...]
) -> None:
    written(tmp_path / "a-s1", plan, finished=False)
    for name in missing:
        (tmp_path / "a-s1" / name).unlink()
    assert place_of(tmp_path, "a-s1", plan) == (tmp_path / "a-s1-2", False)


def test_a_plan_cut_short_is_that_of_an_interrupted_run(tmp_path: Path, plan: Prepared) -> None:
    written(tmp_path / "a-s1", plan, finished=False)
    text = (tmp_path / "a-s1" / "plan.json").read_text()
    (tmp_path / "a-s1" / "plan.json").write_text(text[: len(text) // 2])
    written(tmp_path / "a-s1-2", plan)
    assert place_of(tmp_path, "a-s1", plan) == (tmp_path / "a-s1-2", True)


def test_a_run_judged_by_this_code_is_taken_over_as_it_is(tmp_path: Path, plan: Prepared) -> None:
    folder = tmp_path / "a-s1"
    written(folder, plan)
    write_json(folder / "provenance.json", {"code_sha256": code_digest()})
    verdict = Verdict(verdict=Status.PASS, findings_verdict=Status.PASS, findings=())
    write_verdict(folder, verdict)
    kept = take_over(folder)
    assert kept is not None
    assert (kept.folder, kept.verdict) == (folder, verdict)
    (folder / "verdict.json").unlink()
    assert take_over(folder) is None


def test_a_run_whose_record_is_broken_is_not_taken_over(tmp_path: Path, plan: Prepared) -> None:
    written(tmp_path / "a-s1", plan)  # by other code, and without events
    assert take_over(tmp_path / "a-s1") is None
    assert free_place(tmp_path, "a-s1") == tmp_path / "a-s1-2"


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(UsageError, match="no folder of a study, and not empty"):
        claim_folder(tmp_path, STAMP)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_two_commands_cannot_work_in_one_folder(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    again = pytest.raises(UsageError, match="another command works in this folder")
    with held(out), again, held(out):
        pass
    with held(out):
        pass
    assert list(out.iterdir()) == []


def test_a_file_is_no_folder_of_a_study(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="it is a file, or below one"), held(out):
            pass


def test_runs_of_other_code_are_refused(tmp_path: Path) -> None:
    claim_folder(tmp_path / "out", STAMP)
    claim_folder(tmp_path / "out", STAMP)
    with pytest.raises(UsageError, match="other code"):
        claim_folder(tmp_path / "out", {**STAMP, "kernel": "c"})
