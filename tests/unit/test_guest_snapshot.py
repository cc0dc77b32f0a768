"""Snapshots of the code: made once, few are kept, and none goes that a guest is reading."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.lab.guest import snapshot as snapshots
from testbed.lab.guest.snapshot import held_snapshot, snapshot

pytestmark = pytest.mark.unit


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """One source file, which stands for all of them; its content names the snapshot."""
    source = tmp_path / "one.py"
    source.write_text("ONE = 1\n", encoding="utf-8")
    monkeypatch.setattr(snapshots, "source_files", lambda: [("testbed/one.py", source)])
    return source


def changes(code: Path, cache: Path, count: int) -> list[Path]:
    """Snapshots of so many further versions, each older than the next."""
    made = []
    for number in range(count):
        code.write_text(f"ONE = {number + 2}\n", encoding="utf-8")
        made.append(snapshot(cache))
        os.utime(made[-1], (number + 2, number + 2))
    return made


def test_the_same_code_has_one_snapshot(code: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "code"
    first = snapshot(cache)
    assert snapshot(cache) == first
    assert (first / "testbed" / "one.py").read_text(encoding="utf-8") == "ONE = 1\n"


def test_the_eight_that_were_used_last_are_kept(code: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "code"
    made = changes(code, cache, 10)
    assert sorted(cache.iterdir()) == sorted(made[2:])


def test_a_snapshot_that_is_held_stays_whole(code: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "code"
    with held_snapshot(cache) as held:
        os.utime(held, (1, 1))
        changes(code, cache, 10)
        assert (held / "testbed" / "one.py").is_file()
    changes(code, cache, 12)
    assert not held.exists()


def test_using_a_snapshot_keeps_it(code: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "code"
    made = changes(code, cache, 8)
    code.write_text("ONE = 2\n", encoding="utf-8")  # the first of these again
    with held_snapshot(cache) as again:
        assert again == made[0]
    code.write_text("ONE = 99\n", encoding="utf-8")
    snapshot(cache)
    assert made[0].exists()
    assert not made[1].exists()
