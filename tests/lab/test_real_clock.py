"""The real clock in the lab guest: a run at scale passes, agrees with virtual time, or is refused.

A live machine may be too busy for any of this; the run then says so itself, and the test is
skipped with its words.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agreement import HANDED_OFF, agree_live
from tests.lab.conftest import Command, Done

pytestmark = [pytest.mark.lab, pytest.mark.alone]


def finding(run: Path, check: str) -> dict[str, object]:
    verdict = json.loads((run / "verdict.json").read_text())
    found = next(one for one in verdict["findings"] if one["check"] == check)
    assert isinstance(found, dict)
    return found


def live(testbed: Command, run: Path, *arguments: str) -> Done:
    """A run under the real clock; skips where this machine is too busy for it."""
    done = testbed("run", *arguments, "--clock", "real", "--out", str(run), "--json")
    if done.status == 4 and "cannot carry the run in real time" in done.err:
        pytest.skip(f"this machine is too busy: {done.err}")
    if done.status == 3 and (run / "metrics.json").is_file():
        late = finding(run, "on-time")
        if late["status"] == "invalid":
            pytest.skip(f"this machine is too busy: {late['violations']}")
    return done


def test_a_live_run_passes_all_checks_and_has_no_fingerprint(
    testbed: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = live(testbed, run, "hello")
    assert done.status == 0, done
    assert done.metrics["timeline_sha256"] is None
    assert "numbers of wan: BDP" in done.err
    plan = json.loads((run / "plan.json").read_text())
    assert plan["clock"] == "real"
    assert plan["scale"]["slow"] == 8
    assert 0.009 < plan["scale"]["size"] < 0.011
    headroom = json.loads((run / "headroom.json").read_text())
    assert 0 < headroom["superframe_s"] < 0.05
    assert (run / "events" / "host.jsonl").stat().st_size > 0
    assert "stolen" in str(finding(run, "on-time")["evidence"])
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "numbers of wan" in page


def test_more_than_the_machine_carries_is_refused_with_a_scale_that_fits(
    testbed: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = testbed(
        "run", "hello", "--clock", "real", "--set", "real_time.size=40 %", "--out", str(run)
    )
    assert done.status == 4, done
    assert "cannot carry the run in real time" in done.err
    assert "--set real_time.slow=" in done.err
    assert list((run / "events").iterdir()) == []
    acts = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    made = [(act["kind"], act["name"]) for act in acts if act["action"] != "undo"]
    undone = [(act["kind"], act["name"]) for act in acts if act["action"] == "undo"]
    assert {kind for kind, _ in made} >= {"shell", "veth"}
    assert [one for one in made if one[0] == "shell" and one not in undone] == []


HURRIED = """\
profiles:
  hurried:
    description: "Steps shorter than the real model can compute"
    source: "this test"
    prefill_base: 1 ms
    prefill_token: 1 us
    prefill_attention: 0 ns
    decode_base: 20 us
    decode_sequence: 0 ns
    decode_context: 0 ns
    max_batch: 16
"""


def test_a_model_that_computes_too_slowly_makes_the_run_invalid(
    testbed: Command, tmp_path: Path
) -> None:
    hardware, run = tmp_path / "hurried.yaml", tmp_path / "run"
    hardware.write_text(HURRIED)
    done = testbed(
        "run", "hello", "--clock", "real", "--set", f"shape.hardware={hardware}",
        "--set", "real_time.slow=4", "--out", str(run),
    )  # fmt: skip
    if done.status == 4:
        pytest.skip(f"this machine is too busy: {done.err}")
    assert done.status == 3, done
    late = finding(run, "on-time")
    assert late["status"] == "invalid"
    assert "steps took 5 % longer than their profile" in str(late["violations"])
    told = (run / "events" / "md1.jsonl").read_text().splitlines()
    steps = [json.loads(line) for line in told if '"step.late"' in line]
    assert len(steps) > 10
    assert all(step["took_ns"] > 1.05 * step["profile_ns"] for step in steps)


def test_a_live_run_agrees_with_the_virtual_one_at_the_same_scale(
    testbed: Command, tmp_path: Path
) -> None:
    virtual = testbed(
        "run", "pdd-hello", "--scaled", *HANDED_OFF, "--out", str(tmp_path / "virtual"), "--json"
    )
    assert virtual.status == 0, virtual
    assert virtual.metrics["timeline_sha256"] is not None

    def run(number: int) -> dict[str, object]:
        done = live(testbed, tmp_path / f"live-{number}", "pdd-hello", *HANDED_OFF)
        assert done.status == 0, done
        return done.metrics

    agree_live(run, virtual.metrics)
