"""A record that was cut, emptied or edited never passes, whichever node it belongs to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.checks import Status, judge
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

NODES = ("c1", "p1", "md1", "lab")
LINKS = ("wan1", "wan2", "fab-p1", "fab-md1")
SMALL = FakeRun(rate=20, warm_up_s=1, measure_s=3, drain_s=30, pool=4, load=1.1)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run_folder(tmp_path / "run", SMALL)


def rewrite(run: Path, node: str, change: Callable[[list[str]], list[str]]) -> None:
    """Replace the lines of one node's record."""
    path = run / "events" / f"{node}.jsonl"
    path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))


def renumber(lines: list[str]) -> list[str]:
    """Number events anew, as one who hides what he took away would."""
    return [json.dumps(json.loads(line) | {"seq": i}) for i, line in enumerate(lines)]


def invalid(run: Path) -> set[str]:
    verdict = judge(run)
    assert verdict.verdict is Status.INVALID
    return {f.check for f in verdict.findings if f.status is Status.INVALID}


@pytest.mark.parametrize("node", NODES)
def test_a_missing_record_is_invalid(run: Path, node: str) -> None:
    (run / "events" / f"{node}.jsonl").unlink()
    assert "record-complete" in invalid(run)


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize(
    "cut",
    [
        lambda lines: lines[:-1],
        lambda lines: lines[: len(lines) // 3],
        lambda lines: lines[:1],
        lambda lines: lines[1:],
        lambda lines: renumber(lines[1:]),
        lambda lines: lines[: len(lines) // 3] + lines[len(lines) // 2 :],
        lambda lines: [],
    ],
    ids=["last", "two thirds", "all but the first", "first", "renumbered", "middle", "all"],
)
def test_a_cut_record_is_invalid(
    run: Path, node: str, cut: Callable[[list[str]], list[str]]
) -> None:
    rewrite(run, node, cut)
    assert invalid(run) & {"record-complete", "agents-stopped"}


@pytest.mark.parametrize("status", [1, -9])
def test_a_lab_that_ended_badly_is_invalid(run: Path, status: int) -> None:
    rewrite(
        run,
        "lab",
        lambda lines: [*lines[:-1], json.dumps(json.loads(lines[-1]) | {"status": status})],
    )
    assert "record-complete" in invalid(run)


def test_events_after_the_end_of_the_lab_are_invalid(run: Path) -> None:
    rewrite(run, "lab", lambda lines: renumber([*lines, lines[-2]]))
    assert "record-complete" in invalid(run)


def test_a_node_that_the_plan_lacks_is_invalid(run: Path) -> None:
    (run / "events" / "x9.jsonl").write_text(
        json.dumps({"t": 0, "node": "x9", "seq": 0, "kind": "barrier", "size": 0}) + "\n"
    )
    assert invalid(run) == {"record-complete"}


def test_lines_out_of_their_order_are_invalid(run: Path) -> None:
    rewrite(run, "c1", lambda lines: [*lines[:5], lines[6], lines[5], *lines[7:]])
    assert invalid(run) == {"record-complete"}


@pytest.mark.parametrize(
    "links", [{link} for link in LINKS] + [set(LINKS)], ids=lambda links: "+".join(sorted(links))
)
def test_a_link_whose_samples_are_gone_is_invalid(run: Path, links: set[str]) -> None:
    rewrite(
        run, "lab",
        lambda lines: renumber([x for x in lines if json.loads(x).get("link") not in links]),
    )  # fmt: skip
    assert invalid(run) == {"payload-sampled"}


@pytest.mark.parametrize(("fell", "broken"), [("wan1", set()), ("fab-p1", {"payload-sampled"})])
def test_counters_that_ended_with_their_wire_cannot_be_missed(
    run: Path, fell: str, broken: set[str]
) -> None:
    def change(lines: list[str]) -> list[str]:
        kept = [json.loads(x) for x in lines if json.loads(x).get("link") not in ("wan1", "wan2")]
        lost = {**kept[1], "kind": "node.lost", "peer": fell, "wanted": False, "how": "killed"}
        return renumber([json.dumps(one) for one in (*kept[:1], lost, *kept[1:])])

    rewrite(run, "lab", change)
    verdict = judge(run)
    assert {f.check for f in verdict.findings if f.status is Status.INVALID} == broken
    (found,) = [f for f in verdict.findings if f.check == "payload-sampled"]
    assert f"not over {fell}" in found.evidence
    (faithful,) = [f for f in verdict.findings if f.check == "links-faithful"]
    assert f"{fell} ended 0.500 s after the barrier although no fault" in faithful.evidence


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("at", [1, 0.3, -1])
def test_time_that_runs_backward_is_invalid(run: Path, node: str, at: float) -> None:
    def change(lines: list[str]) -> list[str]:
        index = int(at * len(lines)) if isinstance(at, float) else at
        events = [json.loads(line) for line in lines]
        events[index]["t"] = events[index - 1]["t"] - 1
        return [json.dumps(event) for event in events]

    rewrite(run, node, change)
    assert "time-ordered" in invalid(run)


@pytest.mark.parametrize(("node", "by_s"), [("c1", 3600), ("lab", 3600), ("p1", 11), ("md1", -1)])
def test_a_last_event_moved_to_another_time_is_invalid(run: Path, node: str, by_s: int) -> None:
    def change(lines: list[str]) -> list[str]:
        last = json.loads(lines[-1])
        last["t"] += by_s * 1_000_000_000
        return [*lines[:-1], json.dumps(last)]

    rewrite(run, node, change)
    assert "time-ordered" in invalid(run)


def test_an_acknowledgement_moved_to_another_time_is_invalid(run: Path) -> None:
    def change(lines: list[str]) -> list[str]:
        events = [json.loads(line) for line in lines]
        acked = [event for event in events if event["kind"] == "transfer.acked"]
        acked[3]["t"] = acked[-1]["t"]
        return [json.dumps(event) for event in events]

    rewrite(run, "p1", change)
    assert "time-ordered" in invalid(run)


def test_a_number_that_no_column_holds_is_invalid(run: Path) -> None:
    rewrite(run, "c1", lambda lines: [lines[0].replace('"t":-', '"t":-9' + "9" * 20), *lines[1:]])
    assert invalid(run) == {"record-readable"}


def test_events_of_one_instant_are_sound(run: Path) -> None:
    times = [
        json.loads(line)["t"] for line in (run / "events" / "p1.jsonl").read_text().splitlines()
    ]
    assert len(set(times)) < len(times)
    assert judge(run).verdict is Status.PASS


@pytest.mark.parametrize(
    "garbage", [b"\xff\xfe\n", b"\x00\n", b"[" * 100_000 + b"\n", b"3\n", b"\n"]
)
@pytest.mark.parametrize("name", ["events/lab.jsonl", "events/p1.jsonl", "workload.jsonl"])
def test_garbage_lines_are_invalid(run: Path, name: str, garbage: bytes) -> None:
    path = run / name
    path.write_bytes(path.read_bytes() + garbage)
    assert invalid(run) == {"record-readable"}
