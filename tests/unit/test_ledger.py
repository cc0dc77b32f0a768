"""The ledger: written before, undone in reverse, and a failing undo hides nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.errors import LabError
from testbed.lab.ledger import Ledger


def lines(path: Path) -> list[tuple[str, str]]:
    return [(row["action"], row["name"]) for row in map(json.loads, path.read_text().splitlines())]


def test_undo_runs_in_reverse_and_is_written_down(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    undone: list[str] = []
    for name in ("a", "b", "c"):
        ledger.acquire("thing", name, lambda name=name: undone.append(name))  # type: ignore[misc]
    assert ledger.undo_all() == ()
    ledger.close()
    assert undone == ["c", "b", "a"]
    assert lines(tmp_path / "ledger.jsonl") == [
        ("acquire", "a"), ("acquire", "b"), ("acquire", "c"),
        ("undo", "c"), ("undo", "b"), ("undo", "a"),
    ]  # fmt: skip


def test_a_failing_undo_is_reported_and_the_rest_still_runs(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    undone: list[str] = []

    def broken() -> None:
        raise RuntimeError("no")

    def gone() -> None:
        raise ProcessLookupError

    ledger.acquire("thing", "first", lambda: undone.append("first"))
    ledger.acquire("thing", "broken", broken)
    ledger.acquire("thing", "gone", gone)
    faults = ledger.undo_all()
    ledger.close()
    assert undone == ["first"]
    assert [fault.subject for fault in faults] == ["broken"]
    assert ("gone", "gone") in lines(tmp_path / "ledger.jsonl")
    assert ledger.undo_all() == ()


def test_one_thing_is_undone_before_its_turn_and_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    undone: list[int] = []
    for number, name in enumerate(("a", "b", "a")):
        ledger.acquire("thing", name, lambda number=number: undone.append(number))  # type: ignore[misc]
    ledger.undo("thing", "a")
    assert undone == [2]
    with pytest.raises(LabError, match="nothing of that name"):
        ledger.undo("other", "a")
    assert ledger.undo_all() == ()
    ledger.close()
    assert undone == [2, 1, 0]


def test_what_cannot_be_undone_before_its_turn_stays(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    tries: list[str] = []

    def broken() -> None:
        tries.append("try")
        if len(tries) == 1:
            raise RuntimeError("no")

    ledger.acquire("thing", "a", broken)
    with pytest.raises(RuntimeError):
        ledger.undo("thing", "a")
    assert ledger.undo_all() == ()
    ledger.close()
    assert len(tries) == 2
