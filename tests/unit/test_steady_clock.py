"""The two places where the host's speed could reach a timeline: libzmq and the kernel's timers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.lab.guest.kernel.quantum import FILE, round_timer_events
from testbed_agents.control.steady import sites

COUNTER = bytes.fromhex("0f31 48c1e220 89c0")


def test_sites_finds_every_read_and_nothing_else() -> None:
    assert sites(b"\x90" * 3 + COUNTER + b"\x90" * 5 + COUNTER) == (3, 16)
    assert sites(COUNTER[:-1] + b"\x90") == ()


def test_libzmq_still_works_when_its_counter_reads_zero() -> None:
    script = (
        "import zmq, ctypes\n"
        "from testbed_agents.control.steady import code_of, sites, steady_libzmq\n"
        "found = steady_libzmq()\n"
        "code = code_of('libzmq')\n"
        "assert sites(ctypes.string_at(code.begin, code.size)) == ()\n"
        "context = zmq.Context()\n"
        "a, b = context.socket(zmq.PUSH), context.socket(zmq.PULL)\n"
        "port = b.bind_to_random_port('tcp://127.0.0.1')\n"
        "a.connect(f'tcp://127.0.0.1:{port}')\n"
        "for number in range(1000):\n"
        "    a.send(str(number).encode())\n"
        "got = [int(b.recv()) for _ in range(1000)]\n"
        "context.destroy(linger=0)\n"
        "print(found, got == list(range(1000)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    count, in_order = done.stdout.split()
    assert int(count) >= 1
    assert in_order == "True"


def tree(folder: Path, text: str) -> Path:
    (folder / FILE).parent.mkdir(parents=True)
    (folder / FILE).write_text(text)
    return folder


KNOWN = """static int itimer_next_event(unsigned long delta,
                             struct clock_event_device *evt)
{
        delta += 1;
        if (time_travel_mode != TT_MODE_OFF) {
                time_travel_add_event(&time_travel_timer_event,
                                      time_travel_time + delta);
        }
}
"""


def test_timer_events_are_rounded_to_whole_quanta(tmp_path: Path) -> None:
    source = tree(tmp_path, KNOWN)
    round_timer_events(source)
    changed = (source / FILE).read_text()
    assert "roundup(time_travel_time + delta, TIMER_MULTIPLIER));" in changed
    assert changed.replace("roundup(", "").replace(", TIMER_MULTIPLIER)", "") == KNOWN


def test_a_linked_file_is_replaced_and_its_original_kept(tmp_path: Path) -> None:
    original = tmp_path / "original.c"
    original.write_text(KNOWN)
    source = tmp_path / "tree"
    (source / FILE).parent.mkdir(parents=True)
    (source / FILE).symlink_to(original)
    round_timer_events(source)
    assert original.read_text() == KNOWN
    assert not (source / FILE).is_symlink()


@pytest.mark.parametrize("text", ["", KNOWN + KNOWN, KNOWN.replace("+ delta", "+ interval")])
def test_an_unknown_source_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="known ways"):
        round_timer_events(tree(tmp_path, text))


def test_a_source_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        round_timer_events(tmp_path)
