"""CI's script: passes on what the lab lane showed, and never on nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.repo.checkout import ROOT

UNIT = "lane: unit\n============ 300 passed in 20.00s ============\nlane: lab\n"


@pytest.mark.parametrize(
    ("output", "make_status", "status"),
    [
        ("====== 12 passed, 1 skipped in 80.10s (0:01:20) ======", 0, 0),
        ("12 passed in 80.10s", 0, 0),
        ("====== 12 skipped in 0.10s ======", 0, 1),
        ("====== no tests ran in 0.10s ======", 0, 1),
        ("", 0, 1),
        ("====== 1 failed, 11 passed in 80.10s ======", 2, 2),
    ],
)
def test_the_lab_lane_decides(tmp_path: Path, output: str, make_status: int, status: int) -> None:
    make = tmp_path / "make"
    said = f"printf '%s' '{UNIT}{output}\n'"
    make.write_text(f'#!/bin/sh\n[ "$*" = test ] || exit 9\n{said}\nexit {make_status}\n')
    make.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", ".ci/run"], cwd=ROOT, env=environment,
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    assert "300 passed" in done.stdout.partition("closing lines")[2]
