"""The wheel holds the two packages and the data folders, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.repo.checkout import PACKAGES, ROOT

DATA = ("topologies", "tc_profiles", "profiles", "scenarios")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_only_the_two_packages_are_installed(wheel: zipfile.ZipFile) -> None:
    tops = {Path(name).parts[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"testbed", "testbed_agents"}


def test_every_module_and_package_file_is_in_it(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    for package in PACKAGES:
        for path in package.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert path.relative_to(package.parent).as_posix() in names


@pytest.mark.parametrize("folder", DATA)
def test_data_files_lie_inside_testbed(wheel: zipfile.ZipFile, folder: str) -> None:
    inside = {n for n in wheel.namelist() if n.startswith(f"testbed/data/{folder}/")}
    shipped = (p for p in (ROOT / folder).rglob("*") if p.suffix in (".yaml", ".jsonl", ".py"))
    files = {f"testbed/data/{p.relative_to(ROOT).as_posix()}" for p in shipped}
    assert inside == files
    assert files


def test_the_command_and_the_licence_are_in_it(wheel: zipfile.ZipFile) -> None:
    texts = {Path(n).name: wheel.read(n).decode() for n in wheel.namelist() if "dist-info" in n}
    assert "testbed = testbed.cli:main" in texts["entry_points.txt"]
    assert "Apache License" in texts["LICENSE"]
