"""Marks that the host sees although the guest's file system keeps whole seconds only."""

from __future__ import annotations

import os
from pathlib import Path

from testbed.contract.progress import FOLDER, Mark
from testbed.lab.guest.progress import read_progress


def in_whole_seconds(file: Path) -> None:
    """What hostfs makes of the times that it is given."""
    seen = file.stat()
    os.utime(file, (seen.st_atime_ns // 10**9, seen.st_mtime_ns // 10**9))


def test_every_mark_is_seen_while_the_clock_stands_still(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    mark = Mark(tmp_path / FOLDER, "lab")
    seen = []
    for _ in range(3):
        mark.touch(7_500_000_000)
        in_whole_seconds(tmp_path / FOLDER / "lab")
        seen.append(read_progress(tmp_path))
    assert [progress.marks for progress in seen] == [1, 2, 3]
    assert {progress.virtual_ns for progress in seen} == {7_000_000_000}
