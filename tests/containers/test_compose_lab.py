"""Runs in containers under the virtual clock: like Mininet's, and the same each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import ExitStatus
from testbed.lab.compose.engine import Engine
from testbed.lab.guest.kernel.cache import cache_root, kernel_path
from tests.agreement import EXACT, HANDED_OFF, agree, agree_live, figure

pytestmark = pytest.mark.containers
CHECKOUT = Path(__file__).resolve().parents[2]
Figures = dict[str, object]
Call = Callable[..., tuple[Path, Figures]]
COMPARED = (
    "ttft.p50_s", "ttft.p90_s", "tpot.p50_s", "transfer.p50_s", "transfer.p99_s",
    "pool.utilization", "gap.p50_s",
)  # fmt: skip


@pytest.fixture(scope="module")
def call(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Call:
    if kernel_path() is None:
        pytest.skip("no lab kernel is built on this machine: testbed kernel build")
    folder = tmp_path_factory.mktemp("runs")
    path = os.pathsep.join((str(CHECKOUT), str(CHECKOUT / "agents")))
    environment = {**os.environ, "PYTHONPATH": path, "DOCKER_HOST": engine.address}

    def run(name: str, *words: str, scenario: str = "hello") -> tuple[Path, Figures]:
        done = subprocess.run(
            [sys.executable, "-m", "testbed", "run", scenario, "--out", name, "--json", *words],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=1500, check=False,
        )  # fmt: skip
        if "--clock" in words and is_too_busy(done.returncode, done.stderr, folder / name):
            pytest.skip(f"this machine is too busy for a live run: {done.stderr}")
        assert done.returncode == 0, done.stdout + done.stderr
        loaded = json.loads(done.stdout.strip().splitlines()[-1])
        assert isinstance(loaded, dict)
        return folder / name, loaded

    return run


def is_too_busy(status: int, err: str, run: Path) -> bool:
    """Whether a live run said so of the machine."""
    if status == ExitStatus.UNABLE:
        return "cannot carry the run in real time" in err
    verdict = run / "verdict.json"
    return status == ExitStatus.INVALID and verdict.is_file() and any(
        one["check"] == "on-time" and one["status"] == "invalid"
        for one in json.loads(verdict.read_text(encoding="utf-8"))["findings"]
    )  # fmt: skip


@pytest.fixture(scope="module")
def contained(call: Call) -> tuple[Path, Figures]:
    return call("contained", "--lab", "compose")


def test_a_run_in_containers_passes_and_leaves_nothing(contained: tuple[Path, Figures]) -> None:
    folder, _ = contained
    verdict = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert verdict["verdict"] == "pass"
    ledger = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
    made = {(one["kind"], one["name"]) for one in ledger if one["action"] == "acquire"}
    undone = {(one["kind"], one["name"]) for one in ledger if one["action"] != "acquire"}
    assert made == undone
    assert not list((cache_root() / "engines").glob("run-*"))


def test_the_same_seed_is_the_same_timeline(call: Call, contained: tuple[Path, Figures]) -> None:
    """Wherever the run lies: dockerd reads the guest's table of mounts."""
    _, again = call("again-in-a-folder-with-a-far-longer-name", "--lab", "compose")
    assert again["timeline_sha256"] == contained[1]["timeline_sha256"]


def test_both_labs_agree(call: Call, contained: tuple[Path, Figures]) -> None:
    _, mininet = call("mininet", "--lab", "mininet")
    for name in COMPARED:
        assert figure(contained[1], name) == pytest.approx(figure(mininet, name), rel=EXACT), name


def test_both_labs_and_both_clocks_agree_at_one_scale(call: Call) -> None:
    """{mininet, compose} x {virtual, real}; tests/lab has Mininet under the real clock.

    At this scale a line holds three packets, and labs whose addresses differ choose other legs for
    some connections: so the labs are held to the wider bands here, and to 1 % at full size above.
    """
    words = ("--lab", "compose", *HANDED_OFF)
    _, contained = call("scaled-compose", "--scaled", *words, scenario="pdd-hello")
    _, mininet = call("scaled-mininet", "--scaled", *HANDED_OFF, scenario="pdd-hello")
    agree(contained, mininet)

    def live(number: int) -> Figures:
        run = f"live-compose-{number}"
        _, figures = call(run, "--clock", "real", *words, scenario="pdd-hello")
        assert figures["timeline_sha256"] is None
        return figures

    agree_live(live, contained)
