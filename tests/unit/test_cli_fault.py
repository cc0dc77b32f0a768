"""``testbed fault``: every kind is listed, and shown with all of its keys."""

from __future__ import annotations

import subprocess
import sys

import pytest

from testbed.scenario.injection import KINDS, keys_of, kind_of

pytestmark = pytest.mark.unit


def call(*words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "fault", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_every_kind_is_listed() -> None:
    status, out, _ = call("list")
    assert status == 0
    assert all(kind_of(kind) in out for kind in KINDS)


def test_a_kind_is_shown_with_its_keys_and_an_example() -> None:
    status, out, _ = call("show", "delay")
    assert status == 0
    delay = next(kind for kind in KINDS if kind_of(kind) == "delay")
    assert all(key.name in out for key in keys_of(delay))
    assert delay.EXAMPLE in out
    assert all(key.meaning for kind in KINDS for key in keys_of(kind))


def test_an_unknown_kind_is_a_usage_error_that_lists_those_there_are() -> None:
    status, _, err = call("show", "dwn")
    assert status == 2
    assert "kinds: down, rate" in err
