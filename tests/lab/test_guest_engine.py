"""An Engine inside the guest: exact delays, real limits, one timeline, nothing left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import HostError, LabError
from testbed.lab.compose import guestimage
from testbed.lab.compose.guestimage import DISK, PROGRAMS, Stock, engine_copy, engine_programs
from testbed.lab.guest.boot import Kernel, Orders, boot, tail
from testbed.lab.guest.kernel.cache import cache_root, kernel_path
from testbed.lab.hostledger import HostLedger
from testbed.run.gc import collect
from tests.fakes.image_archive import with_libraries, write_archive
from tests.lab.conftest import environment

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

START_NS = 1_767_225_600 * 10**9
INSIDE = Path(__file__).with_name("inside") / "engine.py"
NAME = "small:1"
TOOLS = (
    "/bin/sh", "/bin/ping", "/bin/ip", "/sbin/tc", "/bin/sleep", "/bin/mkdir", "/usr/bin/tail",
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _engine_is_there() -> None:
    try:
        engine_programs()
    except HostError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Stock]:
    path = tmp_path_factory.mktemp("image") / "images.tar"
    identity = write_archive(path, NAME, with_libraries(*TOOLS))
    return path, Stock(((NAME, identity),))


def kernel() -> Kernel:
    linux = kernel_path()
    assert linux is not None
    return Kernel(linux, linux.with_name("entropy.so"))


def answers_of(run: Path, archive: tuple[Path, Stock]) -> dict[str, Any]:
    """Runs ``inside/engine.py`` in a guest of 1 GiB."""
    path, stock = archive
    (run / "logs").mkdir(parents=True)
    shutil.copyfile(INSIDE, run / "engine.py")
    cache = cache_root()
    with (
        HostLedger(cache) as ledger,
        engine_copy(stock, lambda to: to.write_bytes(path.read_bytes()), kernel(), cache, ledger)
        as copy,
    ):  # fmt: skip
        orders = Orders(run, ("/mnt/run/engine.py",), 1 << 30, 1, START_NS, engine=copy)
        outcome = boot(kernel(), orders, cache)
        assert outcome.status == 0, tail(run / "logs" / "guest.log", 40)
    assert not copy.exists()
    loaded = json.loads((run / "answers.json").read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_containers_under_the_virtual_clock(tmp_path: Path, archive: tuple[Path, Stock]) -> None:
    first = answers_of(tmp_path / "first", archive)
    times = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)/", str(first["ping"]))
    assert times is not None, first["ping"]
    assert all(abs(round(1000 * float(time)) - 20_000) <= 1 for time in times.groups())
    assert "0% packet loss" in str(first["ping"])
    assert "default via 10.9.1.1" in str(first["routes"])
    assert "Read-only file system" in str(first["read_only"])
    assert first["limited"] == [137, 1]
    assert first["mounts"] == []
    assert len(first["processes"]) == 2, "only the guest's first process and the program are left"
    assert answers_of(tmp_path / "second", archive) == first


def test_a_damaged_archive_is_refused(tmp_path: Path, archive: tuple[Path, Stock]) -> None:
    path, stock = archive
    content = path.read_bytes()

    def export(to: Path) -> None:
        to.write_bytes(content[: len(content) // 2])

    before = sorted((cache_root() / "engines").iterdir())
    other = Stock(((NAME, stock.images[0][1]), ("absent:1", "sha256:" + "0" * 64)))
    with (
        HostLedger(cache_root()) as ledger,
        pytest.raises(LabError, match="load images"),
        engine_copy(other, export, kernel(), cache_root(), ledger),
    ):
        pytest.fail("a damaged archive was taken")
    assert sorted((cache_root() / "engines").iterdir()) == before


HOLDER = """
import sys
from pathlib import Path
from testbed.lab.compose.guestimage import Stock, engine_copy
from testbed.lab.hostledger import HostLedger

cache = Path(sys.argv[1])
with HostLedger(cache) as ledger, engine_copy(Stock(()), Path.touch, None, cache, ledger) as copy:
    print(copy, flush=True)
    sys.stdin.read()
"""


def test_the_copy_of_a_killed_run_is_collected(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    prepared = cache / "engines" / Stock(()).digest(engine_programs())
    (prepared / PROGRAMS).mkdir(parents=True)
    (prepared / PROGRAMS / "dockerd").write_bytes(b"program")
    (prepared / DISK).write_bytes(b"disk")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(cache)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        copy = Path(holder.stdout.readline().strip())
        assert (copy / DISK).read_bytes() == b"disk"
        assert os.path.samefile(copy / PROGRAMS / "dockerd", prepared / PROGRAMS / "dockerd")
        assert [deed.done for deed in collect(cache)] == ["left alone, its owner lives"]
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert [deed.done for deed in collect(cache)] == ["removed"]
    assert not copy.exists()
    assert (prepared / DISK).read_bytes() == b"disk"
    assert list((cache / "ledger").iterdir()) == []


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(guestimage, "_PLACES", str(tmp_path))
    with pytest.raises(HostError, match=r"dockerd: it is not installed.*\n.*apt-get install"):
        engine_programs()
