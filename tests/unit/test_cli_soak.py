"""``testbed soak`` as a user calls it: what means nothing is refused before anything is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit


def call(folder: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "soak", *words, "--out", str(folder / "soak")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--kind", "restart"), "only containers start anew"),
        (("--kind", "dwn"), "no such kind"),
        (("--schedules", "0"), "greater than or equal to 1"),
        (("hello", "--kind", "loss"), "nothing there can suffer it"),
        (("no-such-scenario",), "no-such-scenario"),
    ],
)
def test_what_means_nothing_is_a_usage_error(
    tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    status, said = call(tmp_path, *words)
    assert status == 2, said
    assert why in said
    assert not (tmp_path / "soak").exists()
