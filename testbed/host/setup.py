"""``make setup``: system packages, virtual environment, model weights, lab kernel.

Run it with any Python 3.11 before anything is installed: ``python3 -m testbed.host.setup``.
Every step looks first and does nothing where nothing is missing, so a second call takes about
a second. It never asks a question and never changes a package that it does not need.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import ExitStatus, HostError
from testbed.host import debian
from testbed.host.environment import Environment, choose_interpreter

CHECKOUT = Path(__file__).resolve().parents[2]


class Report:
    """Prints one line a step, with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        print(f"setup {time.monotonic() - self._began:6.1f} s  {text}", flush=True)


def main(argv: list[str]) -> int:
    """Runs all steps; returns the exit status of the contract."""
    parser = argparse.ArgumentParser(prog="make setup")
    parser.add_argument("--with-tests", action="store_true", help="also what only tests need")
    parser.add_argument(
        "--with-containers", action="store_true", help="also a container engine and Compose"
    )
    wanted = parser.parse_args(argv)
    extras = frozenset(
        purpose
        for purpose, asked in (
            (debian.Purpose.TESTS, wanted.with_tests),
            (debian.Purpose.CONTAINERS, wanted.with_containers),
        )
        if asked
    )
    say = Report()
    try:
        with _one_at_a_time(say):
            _packages(say, extras)
            environment = Environment(
                CHECKOUT, choose_interpreter(), os.environ.get("TORCH_INDEX", "")
            )
            environment.install_packages(say)
            environment.install_project(say)
            environment.convert_weights(say)
            if debian.Purpose.CONTAINERS in extras or environment.lost_compose:
                environment.install_compose(say)
        _kernel(environment)
    except HostError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("interrupted; the next make setup goes on from here", file=sys.stderr)
        return 130
    say("ready: .venv/bin/testbed")
    return ExitStatus.PASS


@contextmanager
def _one_at_a_time(say: Report) -> Iterator[None]:
    """Two set-ups of one checkout at once would write the same environment."""
    with (CHECKOUT / "requirements.lock").open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of this checkout")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _packages(say: Report, extras: frozenset[debian.Purpose]) -> None:
    """Adds missing system packages; an ordinary user is told the line to run.

    What only tests or containers need is added where that is possible and else left out: the
    tests that need it are skipped and say so.
    """
    absent = debian.missing(extras)
    if not absent:
        return
    names = ", ".join(package.name for package in absent)
    needed = tuple(p for p in absent if p.purpose not in debian.OPTIONAL)
    if os.geteuid() != 0:
        if needed:
            raise HostError(
                "add system packages", names, "only an administrator can",
                f"sudo sh -c '{debian.install_line(absent)}'",
            )  # fmt: skip
        say(f"without {names}: some tests will be skipped")
        return
    say(f"installing system packages: {names}")
    if not debian.install(absent):
        left = debian.missing()
        if left:
            raise HostError(
                "add system packages", ", ".join(package.name for package in left),
                "apt-get did not install them", f"see what it says: {debian.install_line(left)}",
            )  # fmt: skip
        say(f"could not install all of {names}: some tests will be skipped")


def _kernel(environment: Environment) -> None:
    """Builds the lab kernel, or finds it built; shows its own progress."""
    argv = [str(environment.python), "-m", "testbed.lab.guest.kernel", "build"]
    done = subprocess.run(argv, cwd=CHECKOUT, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise HostError(
            "build the lab kernel", " ".join(argv), f"it ended with status {done.returncode}",
            "see the message above",
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
