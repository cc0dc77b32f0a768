"""What lab tests share: the built kernel, and the command as a user calls it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.lab.guest.kernel.cache import kernel_path

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Done:
    """A finished command."""

    status: int
    out: str
    err: str

    @property
    def metrics(self) -> dict[str, object]:
        """metrics.json as ``--json`` printed it on the last line."""
        loaded = json.loads(self.out.strip().splitlines()[-1])
        if not isinstance(loaded, dict):
            raise TypeError("the last line is not metrics.json")
        return loaded


Command = Callable[..., Done]


def environment(checkout: Path = CHECKOUT, **changes: str) -> dict[str, str]:
    """The caller's environment with the checkout's packages first."""
    path = os.pathsep.join((str(checkout), str(checkout / "agents")))
    return {**os.environ, "PYTHONPATH": path, **changes}


@pytest.fixture
def testbed(tmp_path: Path) -> Command:
    """Runs ``testbed …`` in a folder of its own and returns how it ended."""

    def call(
        *arguments: str,
        checkout: Path = CHECKOUT,
        prefix: tuple[str, ...] = (),
        folder: Path = tmp_path,
        **changes: str,
    ) -> Done:
        done = subprocess.run(
            [*prefix, sys.executable, "-m", "testbed", *arguments],
            cwd=folder, env=environment(checkout, **changes),
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(autouse=True, scope="session")
def _kernel_is_there() -> None:
    if kernel_path() is None:
        pytest.skip("no lab kernel is built on this machine: testbed kernel build")


def guests(staging: Path) -> set[int]:
    """Process ids of guest kernels and wardens whose staging folder is below ``staging``."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(staging).encode() in command and (
            b"time-travel=inf-cpu" in command or b"guest/warden.py" in command
        ):
            found.add(int(entry.name))
    return found


@pytest.fixture
def staging(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A TMPDIR of the test's own; nothing that the test started may outlive it there.

    Its path is short: the guest's console is a socket, whose path holds 107 bytes.
    """
    tmp_path_factory.getbasetemp()  # pytest's own folder must not come to lie in this one
    folder = Path(tempfile.mkdtemp(prefix="lab-", dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    assert not guests(folder), "a guest or its warden is still alive"
    assert not list(folder.glob("testbed-guest-*")), "a staging folder was left"
    shutil.rmtree(folder)
