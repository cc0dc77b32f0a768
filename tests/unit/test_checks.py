"""Every check passes on a sound run and notices exactly what breaks its claim."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.checks import CHECKS, Case, Finding, Status, examine, judge, read_case, worst
from testbed.checks.verdict import read_verdict
from testbed.errors import AnalysisError, ExitStatus
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

Line = dict[str, object]
SMALL = FakeRun(rate=20, warm_up_s=1, measure_s=3, drain_s=30, pool=4, load=1.1)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run_folder(tmp_path / "run", SMALL)


def edit(run: Path, node: str, change: Callable[[list[Line]], None]) -> None:
    """Change one node's events, keeping them gapless and in order of time."""
    path = run / "events" / f"{node}.jsonl"
    lines: list[Line] = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    lines.sort(key=lambda line: int(str(line["t"])))
    for number, line in enumerate(lines):
        line["seq"] = number
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def first(lines: list[Line], kind: str) -> Line:
    return next(line for line in lines if line["kind"] == kind)


def statuses(run: Path) -> dict[str, Status]:
    return {finding.check: finding.status for finding in judge(run).findings}


def broken(run: Path) -> set[str]:
    return {name for name, status in statuses(run).items() if status is not Status.PASS}


def test_a_sound_run_passes_every_check(run: Path) -> None:
    verdict = judge(run)
    assert [f.check for f in verdict.findings if f.status is not Status.PASS] == []
    assert verdict.verdict is Status.PASS
    assert verdict.exit_status is ExitStatus.PASS
    assert len(verdict.findings) == len(CHECKS)
    assert read_verdict(run / "verdict.json") == verdict


def test_the_pool_of_the_fake_really_queues(run: Path) -> None:
    waits = [step.wait_ns for step in read_case(run).history.steps if step.wait_ns > 0]
    assert len(waits) > 10


def test_a_wrong_token_is_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        token = first(lines, "token")
        done = next(x for x in lines if x["kind"] == "request.done" and x["req"] == token["req"])
        token["token"] = 511 - int(str(token["token"]))
        done["tokens"] = [token["token"], *list(done["tokens"])[1:]]  # type: ignore[call-overload]

    edit(run, "c1", change)
    assert broken(run) == {"tokens-equal-reference"}
    assert judge(run).exit_status is ExitStatus.FAIL


@pytest.mark.parametrize(("gap", "expected"), [(1e-5, Status.PASS), (0.5, Status.FAIL)])
def test_fp32_may_differ_only_at_a_near_tie(tmp_path: Path, gap: float, expected: Status) -> None:
    run = write_run_folder(
        tmp_path / "run",
        FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4, model="smollm2-135m"),
    )
    path = run / "reference.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[3]["tokens"][0] += 1
    lines[3]["gaps"][0] = gap
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    finding = next(f for f in judge(run).findings if f.check == "tokens-equal-reference")
    assert finding.status is expected
    assert f"{int(expected is Status.PASS)} near ties accepted" in finding.evidence


def test_a_truncated_answer_is_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        done = first(lines, "request.done")
        last = [x for x in lines if x["kind"] == "token" and x["req"] == done["req"]][-1]
        lines.remove(last)
        done["tokens"] = list(done["tokens"])[:-1]  # type: ignore[call-overload]

    edit(run, "c1", change)
    assert broken(run) == {"tokens-equal-reference"}


def test_a_token_seen_twice_is_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        at = next(i for i, line in enumerate(lines) if line["kind"] == "token")
        lines.insert(at, dict(lines[at]))

    edit(run, "c1", change)
    assert broken(run) == {"tokens-ordered"}


def test_silence_is_noticed(run: Path) -> None:
    edit(run, "c1", lambda lines: lines.remove(first(lines, "request.done")))
    assert broken(run) == {"answered-once"}


def test_two_endings_are_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        done = first(lines, "request.done")
        lines.append({**done, "kind": "request.failed", "reason": "late"})

    edit(run, "c1", change)
    assert broken(run) == {"answered-once"}


def test_a_reported_failure_is_an_answer_but_all_failures_are_not(tmp_path: Path) -> None:
    some = write_run_folder(tmp_path / "some", replace(SMALL, fail=frozenset({3, 5})))
    verdict = judge(some)
    assert verdict.verdict is Status.PASS
    finding = next(f for f in verdict.findings if f.check == "answered-once")
    assert "2 reported failed (2 x transfer-timeout)" in finding.evidence
    assert "2 of 80 requests failed: transfer-timeout 2" in verdict.in_words()


def test_a_run_of_failures_only_fails_and_names_its_cause(tmp_path: Path) -> None:
    run = write_run_folder(tmp_path / "run", replace(SMALL, fail=frozenset(range(1000))))
    verdict = judge(run)
    assert broken(run) == {"answered-once"}
    assert verdict.exit_status is ExitStatus.FAIL
    assert verdict.in_words() == (
        f"1 of {len(CHECKS) - 1} checks failed: answered-once; "
        "80 of 80 requests failed: transfer-timeout 80."
    )
    assert read_verdict(run / "verdict.json") == verdict


def test_a_run_in_which_nobody_asked_cannot_be_judged(run: Path) -> None:
    kept = {"agent.ready", "barrier", "agent.stop"}
    edit(run, "c1", lambda lines: lines.__setitem__(
        slice(None), [line for line in lines if line["kind"] in kept]
    ))  # fmt: skip
    assert statuses(run)["tokens-equal-reference"] is Status.INVALID


def test_an_acknowledgement_before_verification_is_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        verified = first(lines, "kv.verified")
        verified["t"] = int(str(verified["t"])) + 1_000

    edit(run, "md1", change)
    assert broken(run) == {"transfers-verified"}


def test_an_unverified_answer_is_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        verified = first(lines, "kv.verified")
        verified.update(kind="kv.refused", reason="digest")

    edit(run, "md1", change)
    assert "transfers-verified" in broken(run)


def test_lost_bytes_are_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        verified = first(lines, "kv.verified")
        verified["size"] = int(str(verified["size"])) - 1

    edit(run, "md1", change)
    assert broken(run) == {"bytes-conserved"}


@pytest.mark.parametrize("change", [1, -1, -1_000_000])
def test_other_bytes_than_planned_are_noticed(run: Path, change: int) -> None:
    path = run / "workload.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["wire_bytes"] += change
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert broken(run) == {"bytes-conserved"}


def test_a_pool_above_its_size_is_noticed(run: Path) -> None:
    plan = json.loads((run / "plan.json").read_text())
    for agent in plan["agents"]:
        agent["pool"]["size"] = SMALL.pool - 1
    (run / "plan.json").write_text(json.dumps(plan))
    assert broken(run) == {"pool-bounded"}


def test_jumping_the_queue_is_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        # two that wait together: exchange their places at the head of the queue
        got = [x for x in lines if x["kind"] == "pool.acquired" and int(str(x["wait_ns"])) > 0]
        one, two = got[5], got[6]
        one["req"], two["req"] = two["req"], one["req"]

    edit(run, "p1", change)
    assert "pool-first-come" in broken(run)


def test_a_connection_never_released_is_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        lines.remove([x for x in lines if x["kind"] == "pool.released"][-1])

    edit(run, "p1", change)
    assert "pool-bounded" in broken(run)


def test_activity_after_the_deadline_is_noticed(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        done = [x for x in lines if x["kind"] == "request.done"][-1]
        done["t"] = int(34.1e9)

    edit(run, "c1", change)
    assert broken(run) == {"deadline-kept"}


def test_a_deviating_link_makes_the_run_invalid(run: Path) -> None:
    rows = json.loads((run / "fidelity.json").read_text())
    rows["links"][2]["ok"] = False
    (run / "fidelity.json").write_text(json.dumps(rows))
    assert broken(run) == {"links-faithful"}
    verdict = judge(run)
    assert verdict.verdict is Status.INVALID
    assert verdict.exit_status is ExitStatus.INVALID
    assert "wan1" in str([f.violations for f in verdict.findings])


@pytest.mark.parametrize("content", ["", "[]", '{"links": []}', '{"links": [{"ok": 1}]}', "3"])
def test_a_run_without_usable_fidelity_is_invalid(run: Path, content: str) -> None:
    (run / "fidelity.json").write_text(content)
    assert judge(run).verdict is Status.INVALID


@pytest.mark.parametrize(
    "name", ["fidelity.json", "reference.jsonl", "plan.json", "events/c1.jsonl"]
)
def test_a_missing_file_makes_the_run_invalid(run: Path, name: str) -> None:
    (run / name).unlink()
    assert judge(run).verdict is Status.INVALID


def test_a_missing_barrier_makes_the_run_invalid(run: Path) -> None:
    edit(run, "p1", lambda lines: lines.remove(first(lines, "barrier")))
    assert statuses(run)["barrier-passed"] is Status.INVALID
    assert broken(run) == {"barrier-passed"}


def test_traffic_before_the_barrier_makes_the_run_invalid(run: Path) -> None:
    edit(run, "c1", lambda lines: first(lines, "request.sent").update(t=-5))
    assert "barrier-passed" in broken(run)


@pytest.mark.parametrize("status", [None, 1])
def test_a_crashed_agent_makes_the_run_invalid(run: Path, status: int | None) -> None:
    def change(lines: list[Line]) -> None:
        if status is None:
            lines.remove(first(lines, "agent.stop"))
        else:
            first(lines, "agent.stop")["status"] = status

    edit(run, "md1", change)
    assert broken(run) == {"agents-stopped"}
    assert judge(run).verdict is Status.INVALID


def test_a_lost_event_makes_the_run_invalid(run: Path) -> None:
    path = run / "events" / "md1.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if '"decode.start"' in line)
    path.write_text("".join(lines[:at] + lines[at + 1 :]))
    assert broken(run) == {"record-complete"}


def test_a_line_cut_short_makes_the_run_invalid_and_is_named(run: Path) -> None:
    path = run / "events" / "p1.jsonl"
    path.write_text(path.read_text()[:-20])
    verdict = judge(run)
    assert verdict.verdict is Status.INVALID
    assert "p1.jsonl:" in verdict.findings[0].evidence


def test_wrong_clocks_break_littles_law(run: Path) -> None:
    def change(lines: list[Line]) -> None:
        for line in lines:
            if line["kind"] == "transfer.acked":
                line["duration_ns"] = int(str(line["duration_ns"])) // 2

    edit(run, "p1", change)
    assert broken(run) == {"littles-law"}


def test_drops_inform_but_do_not_decide(run: Path) -> None:
    edit(run, "lab", lambda lines: first(lines, "link.sample").update(drops=7))
    verdict = judge(run)
    assert broken(run) == {"drops-explained"}
    assert verdict.verdict is Status.PASS
    deciding = len(CHECKS) - 1
    assert verdict.in_words() == f"All {deciding} checks pass; 1 remark."
    assert "drops-explained" not in judge(run).in_words()


class _Crash:
    name = "crash"
    claim = "This check never ends well."

    def examine(self, case: Case) -> Finding:
        raise ZeroDivisionError(f"no {case.plan.scenario}")


def test_a_crash_inside_a_check_is_invalid_with_its_cause(run: Path) -> None:
    (finding,) = examine(read_case(run), (_Crash(),))
    assert finding.status is Status.INVALID
    assert "ZeroDivisionError: no pool-wide-skewed" in finding.evidence


def test_no_check_at_all_is_invalid() -> None:
    assert worst(()) is Status.INVALID


def test_a_repeated_request_in_the_workload_is_refused(run: Path) -> None:
    path = run / "workload.jsonl"
    path.write_text(path.read_text() + path.read_text().splitlines()[0] + "\n")
    with pytest.raises(AnalysisError, match="request 0 again"):
        read_case(run)
