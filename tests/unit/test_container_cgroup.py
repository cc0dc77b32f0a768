"""What is read of control groups, version 1 and 2, and of a process that is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.lab.compose import cgroup
from testbed.lab.compose.cgroup import cgroup_folders, is_frozen, memory_kills

pytestmark = pytest.mark.unit
NOBODY = 4_194_304
"""No process has such a number (PID_MAX_LIMIT)."""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def test_kills_are_counted_by_either_version(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(one / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    write(two / "memory.events", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 1\noom_group_kill 0\n")
    assert memory_kills({"memory": one, "": two}) == 2
    assert memory_kills({"": two}) == 1


def test_a_container_that_ended_has_nothing_to_read(tmp_path: Path) -> None:
    assert cgroup_folders(NOBODY) == {}
    assert memory_kills({"memory": tmp_path / "gone"}) == 0
    assert not is_frozen(NOBODY)


def test_every_controller_of_a_process_has_its_folder() -> None:
    lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    named = {name for line in lines for name in line.split(":", 2)[1].split(",")}
    found = cgroup_folders(os.getpid())
    assert found.keys() == named
    assert all(path.is_relative_to("/sys/fs/cgroup") for path in found.values())


@pytest.mark.parametrize(
    ("line", "file", "still", "goes"),
    [
        ("7:freezer:/docker/1", "freezer/docker/1/freezer.state", "FROZEN\n", "THAWED\n"),
        ("0::/docker/1", "docker/1/cgroup.events", "populated 1\nfrozen 1\n", "frozen 0\n"),
    ],
)
def test_whether_it_stands_still_is_read_by_either_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, file: str, still: str, goes: str
) -> None:
    monkeypatch.setattr(cgroup, "_ROOT", tmp_path / "fs")
    monkeypatch.setattr(cgroup, "_PROC", tmp_path / "proc")
    write(tmp_path / "proc" / "5" / "cgroup", f"{line}\n")
    for text, answer in ((still, True), (goes, False)):
        write(tmp_path / "fs" / file, text)
        assert is_frozen(5) is answer
