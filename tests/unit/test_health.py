"""A health check that sleeps until the program is ready, and fails where it never is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.contract.health import CHECK, PIPE, Health, make_pipe

pytestmark = pytest.mark.unit


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "health"
    make_pipe(path)
    return path


@contextmanager
def check(pipe: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The health check of the Compose file, on a pipe of the test's own."""
    assert CHECK[0] == "CMD"
    asked = subprocess.Popen([str(pipe) if word == PIPE else word for word in CHECK[1:]])
    try:
        yield asked
    finally:
        asked.kill()
        asked.wait()


def test_it_waits_for_the_word(pipe: Path) -> None:
    health = Health(pipe)
    with check(pipe) as asked:
        assert asked.poll() is None
        health.say_ready()
        assert asked.wait(20) == 0


def test_a_word_that_was_said_before_is_heard(pipe: Path) -> None:
    Health(pipe).say_ready()
    with check(pipe) as asked:
        assert asked.wait(20) == 0


def test_it_fails_where_the_program_ends_without_the_word(pipe: Path) -> None:
    with check(pipe) as asked:
        os.close(os.open(pipe, os.O_WRONLY))  # opens as soon as the check reads
        assert asked.wait(20) == 1


def test_it_fails_where_there_is_no_pipe(tmp_path: Path) -> None:
    with check(tmp_path / "absent") as asked:
        assert asked.wait(20) == 2


def test_a_new_start_forgets_the_word(pipe: Path) -> None:
    Health(pipe).say_ready()
    make_pipe(pipe)
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(descriptor, 8) == b""
    os.close(descriptor)


def test_the_module_becomes_the_program_that_it_is_given() -> None:
    words = "import testbed.contract.health as health; health.become('this')"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert "Zen of Python" in done.stdout
