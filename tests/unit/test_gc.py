"""``testbed gc``: undoes what a killed process wrote down, and not one thing else."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.checks.verdict import read_verdict
from testbed.errors import HostError
from testbed.lab.guest.kernel.cache import cache_root
from testbed.lab.hostledger import HostLedger, Kind
from testbed.lab.leftover import ledgers
from testbed.run.folder import make_folder
from testbed.run.gc import collect, refuse_failures
from testbed.run.mark import read_mark
from tests.unit.test_command_line import ROOT, testbed

pytestmark = pytest.mark.unit

KILLED = """
import os, signal, sys
from pathlib import Path
from testbed.lab.hostledger import HostLedger, Kind
from testbed.run.folder import make_folder
cache, root = map(Path, sys.argv[1:])
ledger = HostLedger(cache)
made = {made}
os.kill(os.getpid(), signal.SIGKILL)
"""
RUN = "make_folder(root / 'run', ledger)"
SCRATCH = "ledger.acquire(Kind.FOLDER, root / 'scratch').mkdir(), (root / 'scratch' / 'in').mkdir()"
LOCK = "ledger.acquire(Kind.LOCK, root / 'core-1.lock').touch()"
BUILD = "ledger.acquire(Kind.BUILD, root / 'building').mkdir()"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_root()


def killed(cache: Path, root: Path, made: str) -> None:
    """A process that writes down, makes, and is killed with SIGKILL."""
    code = KILLED.replace("{made}", made)
    done = subprocess.run(
        [sys.executable, "-c", code, str(cache), str(root)], check=False,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'agents'}"}, timeout=60,
    )  # fmt: skip
    assert done.returncode == -9


def words(cache: Path, dry_run: bool = False) -> list[str]:
    return [str(deed) for deed in collect(cache, dry_run)]


def test_without_ledgers_there_is_nothing_to_do(cache: Path) -> None:
    assert words(cache) == []
    assert not cache.exists()


@pytest.mark.parametrize(
    ("made", "name", "kind"),
    [
        (SCRATCH, "scratch", "folder"),
        (LOCK, "core-1.lock", "lock file"),
        (BUILD, "building", "kernel build"),
    ],
)
def test_what_a_killed_process_made_is_removed(
    cache: Path, tmp_path: Path, made: str, name: str, kind: str
) -> None:
    killed(cache, tmp_path, made)
    (tmp_path / "neighbour").mkdir()
    assert words(cache, dry_run=True) == [f"{kind} {tmp_path / name}: would be removed"]
    assert (tmp_path / name).exists()
    assert words(cache) == [f"{kind} {tmp_path / name}: removed"]
    assert not (tmp_path / name).exists()
    assert (tmp_path / "neighbour").is_dir()
    assert ledgers(cache) == ()
    assert words(cache) == []


def test_a_run_whose_orchestrator_was_killed_is_marked_and_kept(
    cache: Path, tmp_path: Path
) -> None:
    killed(cache, tmp_path, RUN)
    run = tmp_path / "run"
    (run / "events" / "c1.jsonl").write_text("evidence\n")
    assert words(cache, dry_run=True) == [f"run {run}: would be marked as interrupted"]
    assert not (run / "verdict.json").exists()
    assert words(cache) == [f"run {run}: marked as interrupted"]
    assert "orchestrator" in (read_mark(run) or "")
    assert read_verdict(run / "verdict.json").in_words().count("run-took-place") == 1
    assert (run / "events" / "c1.jsonl").read_text() == "evidence\n"
    assert words(cache) == []


def test_a_run_that_has_its_verdict_keeps_it(cache: Path, tmp_path: Path) -> None:
    killed(cache, tmp_path, RUN)
    (tmp_path / "run" / "verdict.json").write_text("mine")
    assert words(cache) == [f"run {tmp_path / 'run'}: has its end already"]
    assert (tmp_path / "run" / "verdict.json").read_text() == "mine"


def test_what_was_written_down_and_never_made_is_already_gone(cache: Path, tmp_path: Path) -> None:
    killed(cache, tmp_path, "ledger.acquire(Kind.FOLDER, root / 'never')")
    assert words(cache) == [f"folder {tmp_path / 'never'}: already gone"]
    assert ledgers(cache) == ()


def test_a_folder_of_others_is_not_marked(cache: Path, tmp_path: Path) -> None:
    killed(cache, tmp_path, "ledger.acquire(Kind.RUN, root / 'home')")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters").write_text("private")
    assert words(cache) == [f"run {tmp_path / 'home'}: left alone, it is no run folder"]
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["letters"]


def test_a_link_in_the_place_of_a_folder_is_not_followed(cache: Path, tmp_path: Path) -> None:
    killed(cache, tmp_path, "ledger.acquire(Kind.FOLDER, root / 'scratch')")
    (tmp_path / "kept").mkdir()
    (tmp_path / "scratch").symlink_to(tmp_path / "kept")
    assert "left alone" in words(cache)[0]
    assert (tmp_path / "kept").is_dir()


def test_a_run_that_goes_on_is_left_alone(cache: Path, tmp_path: Path) -> None:
    with HostLedger(cache) as ledger:
        run = make_folder(tmp_path / "run", ledger)
        killed(cache, tmp_path, "ledger.acquire(Kind.RUN, root / 'run')")
        assert words(cache) == [
            f"run {run}: left alone, its owner lives",
            f"run {run}: left alone, a living process uses it",
        ]
        assert not (run / "verdict.json").exists()


def test_a_lock_that_another_process_holds_is_left_alone(cache: Path, tmp_path: Path) -> None:
    killed(cache, tmp_path, LOCK)
    with (tmp_path / "core-1.lock").open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert "another process holds it" in words(cache)[0]
    assert (tmp_path / "core-1.lock").exists()


def test_a_ledger_that_is_none_of_ours_is_reported_and_kept(cache: Path) -> None:
    (cache / "ledger").mkdir(parents=True)
    (cache / "ledger" / "1-x.jsonl").write_text("{}\n")
    deeds = list(collect(cache))
    assert "cannot be read" in str(deeds[0])
    with pytest.raises(HostError, match="ledger"):
        refuse_failures(deeds)
    assert len(ledgers(cache)) == 1


def test_the_command_says_what_it_did_and_report_says_that_the_run_was_interrupted(
    cache: Path, tmp_path: Path
) -> None:
    killed(cache, tmp_path, RUN)
    work = tmp_path / "work"
    work.mkdir()
    environment = {"XDG_CACHE_HOME": str(cache.parent)}
    dry = testbed(work, "gc", "--dry-run", **environment)
    assert (dry.returncode, dry.stdout.count("would be marked")) == (0, 1)
    done = testbed(work, "gc", **environment)
    assert (done.returncode, done.stdout.count("marked as interrupted")) == (0, 1)
    again = testbed(work, "gc", **environment)
    assert (again.returncode, again.stdout) == (0, "nothing was left behind\n")
    report = testbed(work, "report", str(tmp_path / "run"), **environment)
    assert report.returncode != 0
    assert "interrupted: its orchestrator" in report.stderr
    assert "orchestrator" in (read_mark(tmp_path / "run") or "")


def test_kinds_that_gc_knows_are_all_there_are() -> None:
    assert {kind.value for kind in Kind} == {"run", "folder", "build", "lock", "engine"}
