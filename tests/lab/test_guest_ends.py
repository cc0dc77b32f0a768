"""A guest ends cleanly whatever happens to it or to its orchestrator."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.errors import HostError, LabError
from testbed.lab.guest.boot import Kernel, Orders, boot
from testbed.lab.guest.kernel.cache import cache_root, kernel_path
from tests.lab.conftest import environment, guests

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

START_NS = 1_767_225_600 * 10**9
SPIN = "import ctypes; ctypes.CDLL(None).prctl(15, b'spinner', 0, 0, 0)\nwhile True: pass"


def orders(run: Path, code: str, stuck_after_s: float = 60.0) -> Orders:
    (run / "logs").mkdir(parents=True)
    return Orders(run, ("-c", code), 512 << 20, 1, START_NS, stuck_after_s)


def kernel() -> Kernel:
    linux = kernel_path()
    assert linux is not None
    return Kernel(linux, linux.with_name("entropy.so"))


def test_exit_status_and_files_come_back(tmp_path: Path) -> None:
    code = "open('/mnt/run/made', 'w').write('yes'); raise SystemExit(7)"
    outcome = boot(kernel(), orders(tmp_path / "run", code), cache_root())
    assert outcome.status == 7
    assert (tmp_path / "run" / "made").read_text() == "yes"


def test_nothing_inside_tells_where_the_run_lies(tmp_path: Path) -> None:
    """Container programs allocate by the length of the table of mounts, and a timeline by that."""
    seen = []
    for place in ("a", "a-much-longer-name/of-a-folder", "b"):
        run = tmp_path / place / "run"
        code = (
            "import os; from pathlib import Path; "
            "text = [Path('/proc/self', n).read_text() for n in ('mountinfo', 'mounts')]; "
            "text += [Path('/proc/cmdline').read_text(), repr(sorted(os.environ.items()))]; "
            "Path('/mnt/run/seen').write_text(chr(10).join(text))"
        )
        assert boot(kernel(), orders(run, code), cache_root()).status == 0
        seen.append((run / "seen").read_text())
    assert "/mnt/run" in seen[0]
    assert str(tmp_path) not in seen[0]
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("path", ["/etc/made", "/mnt/src/made", "/mnt/venv/made", "/root/made"])
def test_only_the_run_folder_is_writable(tmp_path: Path, path: str) -> None:
    code = f"open({path!r}, 'w')"
    outcome = boot(kernel(), orders(tmp_path / "run", code), cache_root())
    assert outcome.status == 1
    assert "Error" in (tmp_path / "run" / "logs" / "guest.log").read_text()
    assert not Path(path).exists()


def test_clock_starts_at_the_given_date_and_jumps(tmp_path: Path) -> None:
    code = (
        "import time; t = time.time_ns(); time.sleep(86400); "
        "open('/mnt/run/times', 'w').write(f'{t} {time.time_ns()}')"
    )
    outcome = boot(kernel(), orders(tmp_path / "run", code), cache_root())
    before, after = map(int, (tmp_path / "run" / "times").read_text().split())
    assert 0 <= before - START_NS < 10**9
    assert 0 <= after - before - 86_400 * 10**9 < 10**8
    assert outcome.wall_s < 60


def test_a_spinning_program_is_reported_stuck(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"stuck.*last process that ran is spinner"):
        boot(kernel(), orders(tmp_path / "run", SPIN, stuck_after_s=3.0), cache_root())


def test_a_program_that_makes_system_calls_is_given_five_times_as_long(tmp_path: Path) -> None:
    """An Engine that starts containers is such a program for minutes where the host is busy."""
    code = "import os\nwhile True: os.getppid()"
    with pytest.raises(LabError, match=r"stuck: .* for (\d+) s wall") as stuck:
        boot(kernel(), orders(tmp_path / "run", code, stuck_after_s=2.0), cache_root())
    waited = re.search(r"for (\d+) s wall", str(stuck.value))
    assert waited is not None
    assert int(waited[1]) >= 10


def test_a_dead_guest_is_reported(tmp_path: Path) -> None:
    code = "import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)"
    with pytest.raises(LabError, match="died"):
        boot(kernel(), orders(tmp_path / "run", code), cache_root())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 96 MiB; its mount goes with the test."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "disk", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_ends_the_run(small_disk: Path) -> None:
    code = (
        "import os, time\n"
        "file = open('/mnt/run/big', 'wb', buffering=0)\n"
        "for _ in range(1000):\n"
        "    file.write(bytes(1 << 20)); os.fsync(file.fileno()); time.sleep(0.1)\n"
    )
    with pytest.raises(HostError, match="disk is full"):
        boot(kernel(), orders(small_disk / "run", code), cache_root())


def test_too_few_mappings_are_named_as_the_cause(tmp_path: Path) -> None:
    if int(Path("/proc/sys/vm/max_map_count").read_text()) > 70_000:
        pytest.skip("this host allows more mappings than the test uses up")
    code = (
        "import mmap\n"
        "room = mmap.mmap(-1, 1 << 30)\n"
        "for at in range(0, 1 << 30, 8192):\n"
        "    room[at] = 1\n"  # every other page: no two of them share a mapping
    )
    plan = replace(orders(tmp_path / "run", code), memory_bytes=3 << 30)
    with pytest.raises(LabError, match="max_map_count"):
        boot(kernel(), plan, cache_root())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_guest_dies_with_its_orchestrator(
    tmp_path: Path, staging: Path, number: signal.Signals
) -> None:
    script = (
        "import signal\n"
        "from pathlib import Path\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background
        "from tests.lab.test_guest_ends import boot, cache_root, kernel, orders, SPIN\n"
        f"boot(kernel(), orders(Path({str(tmp_path / 'run')!r}), SPIN), cache_root(),"
        " lambda progress, wall: (print(wall, flush=True)))\n"
    )
    orchestrator = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    try:
        assert orchestrator.stdout is not None
        orchestrator.stdout.readline()  # the watcher runs, so the guest was started
        started = guests(staging)
        assert started
        os.kill(orchestrator.pid, number)
        orchestrator.wait(timeout=10)
        deadline = time.monotonic() + 5.0
        while guests(staging) and time.monotonic() < deadline:
            select.select([], [], [], 0.05)
        assert not guests(staging)
    finally:
        orchestrator.kill()
        orchestrator.wait()
        if orchestrator.stdout is not None:
            orchestrator.stdout.close()
