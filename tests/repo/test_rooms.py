"""Every room has its place in the import contracts, and the contracts bite."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.repo.checkout import ROOT


def contracts() -> list[dict[str, object]]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: list[dict[str, object]] = table["tool"]["importlinter"]["contracts"]
    return found


def test_every_room_of_testbed_is_a_layer() -> None:
    layers = next(c for c in contracts() if c["id"] == "layers")["layers"]
    named = set(re.findall(r"[a-z]+", str(layers)))
    rooms = {p.parent.name for p in (ROOT / "testbed").glob("*/__init__.py")}
    modules = {p.stem for p in (ROOT / "testbed").glob("*.py")} - {"__init__", "__main__"}
    assert (rooms | modules) - named == set()


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("testbed.contract.role", "testbed.scenario"),
        ("testbed.scenario", "subprocess"),
        ("testbed.scenario", "torch"),
        ("testbed.metrics", "testbed_agents"),
        ("testbed_agents.model", "zmq"),
        ("testbed_agents.client.agent", "testbed.lab"),
    ],
)
def test_a_forbidden_import_is_caught(tmp_path: Path, module: str, target: str) -> None:
    for name in ("testbed", "agents"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    base = tmp_path if module.startswith("testbed.") else tmp_path / "agents"
    path = base / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    with file.open("a", encoding="utf-8") as stream:
        stream.write(f"\nimport {target}\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{tmp_path}/agents", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    broken = done.stdout.partition("Broken contracts")[2]
    assert f"{module} -> {target} " in broken, done.stdout
