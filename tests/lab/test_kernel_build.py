"""The build recipe, walked with a stand-in kernel tree whose Makefile takes milliseconds."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.errors import HostError
from testbed.lab.guest.kernel import build_kernel, kernel_path
from testbed.lab.guest.kernel.cache import kernels_folder
from testbed.lab.guest.kernel.quantum import FILE

# A recipe line starts with a tab; `$(KCONFIG_ALLCONFIG)` comes from the environment.
MAKEFILE = """VERSION = 6
PATCHLEVEL = 12
allnoconfig:
\t@{configure}
linux:
\t@{compile}
"""
TIME = """static int itimer_next_event(unsigned long delta)
{
  time_travel_add_event(&time_travel_timer_event,
    time_travel_time + delta);
}
"""
CONFIGURE = "cp $(KCONFIG_ALLCONFIG) $(O)/.config"
COMPILE = "echo '  CC      init/main.o'; cp /bin/true $(O)/linux"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def tree(folder: Path, configure: str = CONFIGURE, compile_: str = COMPILE) -> Path:
    (folder / "arch" / "um").mkdir(parents=True)
    (folder / "arch" / "um" / "kernel").mkdir()
    (folder / FILE).write_text(TIME)
    (folder / "Makefile").write_text(MAKEFILE.format(configure=configure, compile=compile_))
    return folder


def left_over() -> list[str]:
    return sorted(path.name for path in kernels_folder().iterdir())


def test_a_build_is_moved_into_place_whole_and_found_again(tmp_path: Path) -> None:
    steps: list[tuple[str, float]] = []
    source = tree(tmp_path / "linux")
    built = build_kernel(source, lambda step, share: steps.append((step, share)))
    assert kernel_path() == built
    assert (built.parent / "entropy.so").is_file()
    assert "compiling init/main.o" in [step for step, _ in steps]
    assert [share for _, share in steps] == sorted(share for _, share in steps)
    assert "building" not in left_over()
    assert sorted(p.name for p in source.iterdir()) == ["Makefile", "arch"]


def test_a_second_build_of_the_same_source_compiles_nothing(tmp_path: Path) -> None:
    first = build_kernel(tree(tmp_path / "linux"))
    stamp = first.stat().st_mtime_ns
    steps: list[str] = []
    assert build_kernel(tmp_path / "linux", lambda step, share: steps.append(step)) == first
    assert first.stat().st_mtime_ns == stamp
    assert steps == ["checking the source", "ready"]


def test_a_failed_compilation_leaves_nothing_but_its_log(tmp_path: Path) -> None:
    source = tree(tmp_path / "linux", compile_="echo 'main.c: no such thing'; exit 1")
    with pytest.raises(HostError, match="no such thing") as caught:
        build_kernel(source)
    assert kernel_path() is None
    assert left_over() == ["failed-build.log", "lock"]
    assert "failed-build.log" in caught.value.remedy


def test_an_option_that_the_kernel_does_not_take_is_named(tmp_path: Path) -> None:
    without = "grep -v SCH_NETEM $(KCONFIG_ALLCONFIG) > $(O)/.config"
    with pytest.raises(HostError, match="CONFIG_NET_SCH_NETEM=y"):
        build_kernel(tree(tmp_path / "linux", configure=without))
    assert kernel_path() is None


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_an_interrupted_build_leaves_no_process_behind(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    # The compiler stands still for as long as nobody writes into the gate.
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    source = tree(tmp_path / "linux", compile_=f"echo $$$$ > {tmp_path}/pid; exec cat {gate}")
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed.lab.guest.kernel", "build", "--source", str(source)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
        # A job in the background ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    held = os.open(gate, os.O_WRONLY)  # returns once the compiler reads
    compiler = os.pidfd_open(int((tmp_path / "pid").read_text()))
    try:
        process.send_signal(number)
        assert process.wait(20) == status
        ended, _, _ = select.select([compiler], [], [], 20)
        assert ended == [compiler]
    finally:
        os.close(compiler)
        os.close(held)
    if number != signal.SIGKILL:
        assert left_over() == ["lock"]
    assert build_kernel(tree(tmp_path / "again")) == kernel_path()
    assert "building" not in left_over()
