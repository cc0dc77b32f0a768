"""Same seed, same nanosecond timeline, whatever differs around the run."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.lab.guest.kernel.cache import kernel_path
from tests.lab.conftest import CHECKOUT, Command, Done

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]


def digest(done: Done) -> str:
    assert done.status == 0, done.out + done.err
    value = done.metrics["timeline_sha256"]
    assert isinstance(value, str)
    assert len(value) == 64
    return value


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Timeline of a plain run of ``hello``."""
    folder = tmp_path_factory.mktemp("first")
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "run", "hello", "--json", "--out", str(folder / "run")],
        cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'agents'}"},
    )  # fmt: skip
    return digest(Done(done.returncode, done.stdout, done.stderr))


def test_second_run_has_the_same_timeline(testbed: Command, first: str) -> None:
    assert digest(testbed("run", "hello", "--json")) == first


def test_another_seed_has_another_timeline(testbed: Command, first: str) -> None:
    assert digest(testbed("run", "hello", "--json", "--seed", "2")) != first


def test_another_memory_size_changes_nothing(testbed: Command, first: str) -> None:
    assert digest(testbed("run", "hello", "--json", "--memory", "3 GiB")) == first


def test_another_clone_path_changes_nothing(testbed: Command, first: str, tmp_path: Path) -> None:
    clone = tmp_path / "a" / "much" / "longer" / "path" / "to" / "the" / "same" / "code"
    for name in ("testbed", "agents", "topologies", "tc_profiles", "profiles", "scenarios"):
        shutil.copytree(CHECKOUT / name, clone / name)
    assert digest(testbed("run", "hello", "--json", checkout=clone)) == first


@pytest.fixture
def loaded_cores() -> Iterator[None]:
    """A busy loop on every core for as long as the test runs."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in os.sched_getaffinity(0)
    ]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.usefixtures("loaded_cores")
def test_a_loaded_machine_changes_nothing(testbed: Command, first: str) -> None:
    assert digest(testbed("run", "hello", "--json")) == first


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_sees_the_same_timeline(
    testbed: Command, first: str, tmp_path: Path
) -> None:
    home = Path("/var/tmp") / f"testbed-user-{os.getpid()}"
    kernel = kernel_path()
    assert kernel is not None
    try:
        kernels = home / "cache" / "pdd-testbed" / "kernels"
        shutil.copytree(kernel.parent, kernels / kernel.parent.name)
        for link in kernel.parent.parent.glob("selected-*"):
            shutil.copy(link, kernels / link.name, follow_symlinks=False)
        nobody = pwd.getpwnam("nobody")
        subprocess.run(["chown", "-R", str(nobody.pw_uid), str(home)], check=True)
        become = (
            "setpriv",
            f"--reuid={nobody.pw_uid}",
            f"--regid={nobody.pw_gid}",
            "--clear-groups",
        )
        done = testbed(
            "run", "hello", "--json", "--out", str(home / "run"),
            prefix=become, folder=home, XDG_CACHE_HOME=str(home / "cache"), HOME=str(home),
            TMPDIR="/tmp",
        )  # fmt: skip
        assert digest(done) == first
    finally:
        shutil.rmtree(home, ignore_errors=True)
