"""The command line as a user calls it: one message, the contract's exit status, nothing made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def testbed(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(ROOT), str(ROOT / "agents")))
    return subprocess.run(
        [sys.executable, "-m", "testbed", *arguments], cwd=folder, capture_output=True, text=True,
        timeout=60, check=False, env={**os.environ, "PYTHONPATH": path, **environment},
    )  # fmt: skip


testbed.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("run", "no-such-scenario"), 2, "known:"),
        (("run", "hello", "--bogus"), 2, "--bogus"),
        (("run", "hello", "--seed", "x"), 2, "--seed"),
        (("run", "hello", "--lab", "foo"), 2, "--lab"),
        (("run", "hello", "--set", "links.wan.rtt=20"), 2, "links.wan.rtt"),
        (("run", "hello", "--clock", "virtual", "--on", "host"), 2, "--on"),
        (("run", "hello", "--memory", "64 MiB"), 2, "256 MiB"),
        (("run", "hello", "--lab", "compose", "--memory", "300 MiB"), 2, "at least 1 GiB"),
        (("run", "hello", "--memory", "100 TiB"), 4, "free"),
        (("run", "hello", "--memory", "64"), 2, "unit"),
        (("run", "hello", "--stuck-after", "0 s"), 2, "1 s"),
        (("run", "hello", "--out", "."), 2, "never reused"),
        (("report", "no-such-run"), 2, "there is no such folder"),
        (("reproduce", "table2", "--quick", "--full"), 2, "exclude"),
        (("reproduce", "table99"), 2, "table99"),
        (("reproduce", "drc", "--seeds", "0"), 2, "--seeds"),
        (("reproduce", "drc", "--seeds", "many"), 2, "--seeds"),
        (("reproduce",), 2, "--list"),
        (("calibrate",), 2, "--model"),
        (("calibrate", "two-dc", "--model", "nano"), 2, "either"),
        (("calibrate", "--model", "nano"), 2, "--out"),
        (("calibrate", "--model", "gpt", "--out", "p.yaml"), 2, "gpt"),
        (("calibrate", "--model", "nano", "--out", "p.yaml", "--runs", "0"), 2, "--runs"),
        (("calibrate", "--model", "nano", "--out", "p.yaml", "--device", "tpu"), 2, "--device"),
        (("calibrate", "--model", "nano", "--out", "p.yaml", "--quick"), 2, "links"),
        (("calibrate", "--model", "nano", "--out", "no/such/p.yaml"), 2, "no/such"),
        (("calibrate", "--model", "nano", "--out", "."), 2, "exist"),
        (("report", "/dev/null"), 2, "/dev/null"),
        (("calibrate", "no-such-profile"), 2, "no-such-profile"),
    ],
)
def test_wrong_calls_end_with_one_message_and_make_nothing(
    tmp_path: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = testbed(tmp_path, *arguments)
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_kernel_is_the_machines_fault(tmp_path: Path) -> None:
    done = testbed(tmp_path, "run", "hello", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 4
    assert "testbed kernel build" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_plan_is_printed_and_nothing_is_made(tmp_path: Path) -> None:
    done = testbed(tmp_path, "plan", "hello", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["scenario"] == "hello"
    assert list(tmp_path.iterdir()) == []


def test_a_plain_terminal_encoding_is_survived(tmp_path: Path) -> None:
    done = testbed(tmp_path, "plan", "hello", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr


def test_a_full_output_is_named(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "testbed", "plan", "hello"], cwd=tmp_path, stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=60, check=False,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'agents'}"},
        )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_an_interrupted_command_says_so_and_ends_with_130(tmp_path: Path) -> None:
    code = (
        "import sys, testbed.cli.commands as commands\n"
        "def stop(*_, **__):\n    raise KeyboardInterrupt\n"
        "import testbed.run.prepare as room\nroom.prepare = stop\n"
        "sys.argv = ['testbed', 'plan', 'hello']\n"
        "from testbed.cli import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        check=False, env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'agents'}"},
    )  # fmt: skip
    assert done.returncode == 130
    assert done.stderr.count("interrupted") == 1
