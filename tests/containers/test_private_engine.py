"""A private Engine ends with its command, however that ends, and gc settles what is left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.errors import HostError
from testbed.lab.compose.dockerd import can_start, dockerd_argv, furnish, private_dockerd
from testbed.lab.compose.engine import BuildOrder, Engine, connect
from testbed.lab.compose.rootimage import LOCAL, REPOSITORY, root_image
from testbed.lab.hostledger import FOLDER
from testbed.lab.leftover import ledgers, read_account

pytestmark = [
    pytest.mark.containers,
    pytest.mark.skipif(bool(can_start()), reason=can_start() or "-"),
]

OWNER = """
import sys, time
from pathlib import Path
from testbed.lab.compose.dockerd import private_dockerd
with private_dockerd(Path(sys.argv[1]), print, networks=False) as address:
    print(address, flush=True)
    sys.stdin.read()
"""

LEAVER = """
import os, sys
from pathlib import Path
from testbed.lab.hostledger import HostLedger, Kind
ledger = HostLedger(Path(sys.argv[1]))
ledger.acquire(Kind.FOLDER, Path(sys.argv[2]))
ledger.acquire(Kind.ENGINE, Path(sys.argv[2]))
os._exit(9)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "pdd-testbed"
    folder.mkdir()
    return folder


@pytest.fixture
def small(cache: Path) -> Iterator[Engine]:
    """A private Engine with nothing in it."""
    with private_dockerd(cache, print, networks=False) as address, connect(address) as engine:
        yield engine


def gc(cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "gc"], capture_output=True, text=True, check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(cache.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def mounted(*folders: Path) -> list[str]:
    """What is mounted in these folders."""
    lines = Path("/proc/mounts").read_text().splitlines()
    return [line for line in lines if any(str(folder) in line for folder in folders)]


def ended(pid: int) -> bool:
    """Whether a process ends within half a minute."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(watched):
        return bool(select.select([watched], [], [], 30)[0])


def test_it_is_gone_after_its_block(cache: Path) -> None:
    with private_dockerd(cache, print, networks=False) as address, connect(address) as engine:
        folder = Path(address.removeprefix("unix://")).parent
        pid = int((folder / "pid").read_text())
        assert engine.version
        kinds = [e.kind.value for f in ledgers(cache) for e in read_account(f).entries]
        assert kinds == ["folder", "engine"]
    assert ended(pid)
    assert not folder.exists()
    assert ledgers(cache) == ()
    assert not mounted(folder, cache)


def test_it_ends_when_its_command_is_killed_and_gc_tidies_up(cache: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(cache)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip().removeprefix("unix://")).parent
        pid = int((folder / "pid").read_text())
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    assert ended(pid)
    said = gc(cache)
    assert f"private Engine {folder}: already gone" in said
    assert f"folder {folder}: removed" in said
    assert not folder.exists()
    assert not list((cache / FOLDER).iterdir())
    assert not mounted(cache)


def test_gc_ends_an_engine_that_was_left(cache: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="left-", dir="/run"))  # sockets want a short path
    furnish(folder, cache / "data")
    subprocess.run([sys.executable, "-c", LEAVER, str(cache), str(folder)], check=False)
    argv = dockerd_argv(folder, cache / "data", networks=False)
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as left:
        assert left.stderr is not None
        for line in left.stderr:
            if "API listen on" in line:
                break
        said = gc(cache)
        left.stderr.read()
        assert left.wait(30) == 0
    assert f"private Engine {folder}: ended" in said
    assert not folder.exists()
    assert not mounted(cache)


def test_a_base_made_of_this_machine_runs_python(small: Engine, cache: Path) -> None:
    if not Path("/usr/lib/python3.11").is_dir():
        pytest.skip("this machine is no Debian with Python 3.11")
    root = root_image(small, LOCAL, cache, print)
    assert root.name.startswith(f"{REPOSITORY}:{root.identity[:16]}")
    said: list[str] = []
    small.build(order(cache, f"FROM {root.name}\nRUN python3 -m venv /v && /v/bin/python -V"),
                said.append)  # fmt: skip
    assert small.image("x:y") is not None
    assert root_image(small, LOCAL, cache, print) == root
    assert len(list((cache / "roots").glob("*.tar"))) == 1


def order(cache: Path, dockerfile: str) -> BuildOrder:
    (cache / "Dockerfile").write_text(dockerfile)
    with tarfile.open(cache / "context.tar", "w") as tar:
        tar.add(cache / "Dockerfile", "Dockerfile")
    return BuildOrder(cache / "context.tar", "Dockerfile", "", "x:y", {}, {}, "none")


def test_a_base_without_python_is_refused(small: Engine, cache: Path) -> None:
    empty = order(cache, 'FROM scratch\nCOPY Dockerfile /x\nRUN ["/python3"]')
    with pytest.raises(HostError, match="cannot build the image: x:y"):
        small.build(empty, print)


def test_a_base_that_is_nowhere_is_refused(small: Engine, cache: Path) -> None:
    with pytest.raises(HostError, match=r"--base (debian|local)"):
        root_image(small, "nowhere.invalid/none:1", cache, print)
    assert small.image("nowhere.invalid/none:1") is None
