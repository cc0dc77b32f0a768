"""Runs in containers under the virtual clock: like Mininet's, and the same each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.lab.compose.engine import Engine
from testbed.lab.guest.kernel.cache import cache_root, kernel_path

pytestmark = pytest.mark.containers
CHECKOUT = Path(__file__).resolve().parents[2]
Figures = dict[str, object]
Call = Callable[..., tuple[Path, Figures]]
ALIKE = 0.01
"""Both labs under the virtual clock differ by less."""
COMPARED = (
    ("ttft", "p50_s"), ("ttft", "p90_s"), ("tpot", "p50_s"), ("transfer", "p50_s"),
    ("transfer", "p99_s"), ("pool", "utilization"), ("gap", "p50_s"),
)  # fmt: skip


@pytest.fixture(scope="module")
def call(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Call:
    if kernel_path() is None:
        pytest.skip("no lab kernel is built on this machine: testbed kernel build")
    folder = tmp_path_factory.mktemp("runs")
    path = os.pathsep.join((str(CHECKOUT), str(CHECKOUT / "agents")))
    environment = {**os.environ, "PYTHONPATH": path, "DOCKER_HOST": engine.address}

    def run(name: str, *words: str) -> tuple[Path, Figures]:
        done = subprocess.run(
            [sys.executable, "-m", "testbed", "run", "hello", "--out", name, "--json", *words],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=1500, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        loaded = json.loads(done.stdout.strip().splitlines()[-1])
        assert isinstance(loaded, dict)
        return folder / name, loaded

    return run


@pytest.fixture(scope="module")
def contained(call: Call) -> tuple[Path, Figures]:
    return call("contained", "--lab", "compose")


def figure(figures: Figures, *path: str) -> float:
    value: object = figures
    for name in path:
        assert isinstance(value, dict)
        value = value[name]
    assert isinstance(value, float | int)
    return value


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
    _, again = call("again", "--lab", "compose")
    assert again["timeline_sha256"] == contained[1]["timeline_sha256"]


def test_both_labs_agree(call: Call, contained: tuple[Path, Figures]) -> None:
    _, mininet = call("mininet", "--lab", "mininet")
    for path in COMPARED:
        assert figure(contained[1], *path) == pytest.approx(figure(mininet, *path), rel=ALIKE), path
