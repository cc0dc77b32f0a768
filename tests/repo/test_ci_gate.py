"""CI's script: passes on what the lanes of guests and containers showed, never on nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.repo.checkout import ROOT

UNIT = "lane: unit\n============ 300 passed in 20.00s ============\n"
GOOD = "====== 12 passed, 1 skipped in 80.10s (0:01:20) ======"


@pytest.mark.parametrize("lane", ["lab", "containers"])
@pytest.mark.parametrize(
    ("output", "make_status", "status"),
    [
        (GOOD, 0, 0),
        ("12 passed in 80.10s", 0, 0),
        ("====== 12 skipped in 0.10s ======", 0, 1),
        ("====== no tests ran in 0.10s ======", 0, 1),
        ("", 0, 1),
        ("====== 1 failed, 11 passed in 80.10s ======", 2, 2),
    ],
)
def test_each_expected_lane_decides(
    tmp_path: Path, lane: str, output: str, make_status: int, status: int
) -> None:
    make = tmp_path / "make"
    ends = {"lab": GOOD, "containers": GOOD, lane: output}
    said = UNIT + "".join(f"lane: {name}\n{end}\n" for name, end in ends.items())
    make.write_text(
        f'#!/bin/sh\n[ "$*" = setup-containers ] && exit 0\n[ "$*" = test ] || exit 9\n'
        f"printf '%s' '{said}'\nexit {make_status}\n"
    )
    make.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", ".ci/run"], cwd=ROOT, env=environment,
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    assert "300 passed" in done.stdout.partition("closing lines")[2]
