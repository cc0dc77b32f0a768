"""Which run a container is about: the one that was noted last, and never an earlier one."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from testbed.contract.note import (
    NoRunError,
    forget_run,
    name_refusal,
    name_run,
    next_run,
    open_notes,
    run_of,
)
from testbed.errors import ExitStatus
from testbed.lab.container.room import open_runs, started_ns

pytestmark = pytest.mark.unit
LATER_NS = 20 * 10**9


def test_a_run_folder_is_itself(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    assert run_of(tmp_path) == tmp_path


def test_the_run_that_was_noted_last_is_found(tmp_path: Path) -> None:
    for name in ("one", "two"):
        name_run(tmp_path, tmp_path / "hello" / name)
    assert run_of(tmp_path) == tmp_path / "hello" / "two"


def test_nothing_noted_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(NoRunError) as caught:
        run_of(tmp_path)
    assert caught.value.status == ExitStatus.USAGE
    with pytest.raises(NoRunError):
        next_run(tmp_path, 0, time.time_ns())


def test_a_refusal_is_no_run_and_says_why(tmp_path: Path) -> None:
    name_run(tmp_path, tmp_path / "hello" / "one")
    name_refusal(tmp_path, ExitStatus.UNABLE)
    for ask in (lambda: run_of(tmp_path), lambda: next_run(tmp_path, 0, 0)):
        with pytest.raises(NoRunError) as caught:
            ask()
        assert caught.value.status == ExitStatus.UNABLE


def test_what_is_forgotten_is_no_run(tmp_path: Path) -> None:
    forget_run(tmp_path)
    name_run(tmp_path, tmp_path / "hello" / "one")
    forget_run(tmp_path)
    with pytest.raises(NoRunError):
        run_of(tmp_path)


def test_an_earlier_runs_note_does_not_count(tmp_path: Path) -> None:
    name_run(tmp_path, tmp_path / "hello" / "one")
    since = (open_notes(tmp_path) / "run").stat().st_mtime_ns + 1
    with pytest.raises(NoRunError):
        next_run(tmp_path, since, time.time_ns())


def test_who_waits_hears_of_the_next_run(tmp_path: Path) -> None:
    found: list[Path] = []
    since = time.time_ns() - 10**9

    def wait() -> None:
        found.append(next_run(tmp_path, since, time.time_ns() + LATER_NS))

    waiter = threading.Thread(target=wait)
    waiter.start()
    name_run(tmp_path, tmp_path / "hello" / "one")
    waiter.join(20)
    assert found == [tmp_path / "hello" / "one"]


def test_the_folder_of_all_runs_is_opened_for_everybody(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir(0o755)
    open_runs(runs)
    assert runs.stat().st_mode & 0o7777 == 0o1777


def test_a_container_knows_when_it_started() -> None:
    assert 0 < started_ns() < time.time_ns()
