"""The images of this tree, as they run: who, with what rights, with which packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from testbed.lab.compose.archive import export_images
from testbed.lab.compose.engine import Engine
from testbed.lab.compose.images import Image, Target, build_images, list_images
from testbed.lab.guest.boot import guest_environment
from testbed.lab.guest.kernel.cache import cache_root
from tests.containers.conftest import Run

pytestmark = pytest.mark.containers
BOTH = pytest.mark.parametrize("target", list(Target))

IMPORT_ALL = """
import importlib, pkgutil, sys
failed = []
for package in sys.argv[1:]:
    root = importlib.import_module(package)
    names = [m.name for m in pkgutil.walk_packages(getattr(root, "__path__", []), package + ".")]
    for name in names:
        if name.endswith((".__main__", ".guest.init", ".guest.warden", ".host.room")):
            continue
        try:
            importlib.import_module(name)
        except ImportError as error:
            if error.name != "docker":
                failed.append(f"{name}: {error}")
print(len(sys.modules), *failed, sep="\\n")
sys.exit(len(failed))
"""
"""Imports every module of the named packages. What speaks to an Engine stays outside (its package
is missing inside on purpose); the boot programs of guests and rooms are no modules."""

TORCH = """
import torch
a = torch.arange(6, dtype=torch.float32).reshape(2, 3)
print(torch.version.cuda, (a @ a.T).tolist(), torch.get_num_threads())
"""

UNCOMPILED = """
import importlib.util, pathlib
bad = []
for path in pathlib.Path("/opt/src").rglob("*.py"):
    pyc = pathlib.Path(importlib.util.cache_from_source(str(path)))
    if not pyc.is_file() or pyc.read_bytes()[4:8] != b"\\x01\\0\\0\\0":
        bad.append(str(path))
print(bad)
"""


@BOTH
def test_it_runs_as_a_user_of_its_own(run: Run, target: Target) -> None:
    ran = run(target, "python3", "-c", "import os, pwd; print(pwd.getpwuid(os.getuid())[:4])")
    assert ran.out.strip() == "('testbed', 'x', 10001, 10001)"


@BOTH
def test_it_has_no_capability_and_can_gain_none(run: Run, target: Target) -> None:
    status = dict(
        line.split(":\t", 1)
        for line in run(target, "cat", "/proc/self/status").out.splitlines()
        if ":\t" in line
    )
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"


@BOTH
def test_only_tmp_can_be_written(run: Run, target: Target) -> None:
    assert run(target, "python3", "-c", "open('/tmp/x', 'w')").status == 0
    for place in ("/x", "/opt/src/x", "/opt/venv/x"):
        ran = run(target, "python3", "-c", f"open({place!r}, 'w')")
        assert ran.status != 0
        assert "Read-only file system" in ran.out or "Permission denied" in ran.out


def test_torch_computes_in_the_agents_image(run: Run) -> None:
    ran = run(Target.AGENT, "python3", "-c", TORCH)
    assert ran.out.strip() == "None [[5.0, 14.0], [14.0, 50.0]] 1"


def test_the_routers_image_has_no_torch(run: Run) -> None:
    ran = run(Target.ROUTER, "python3", "-c", "import torch")
    assert ran.status == 1
    assert "No module named 'torch'" in ran.out


def test_every_module_of_ours_can_be_imported_in_the_agents_image(run: Run) -> None:
    ran = run(Target.AGENT, "python3", "-c", IMPORT_ALL, "testbed_agents", "testbed")
    assert ran.status == 0, ran.out
    assert int(ran.out.split()[0]) > 500


def test_what_wires_and_routers_need_can_be_imported_in_their_image(run: Run) -> None:
    ran = run(
        Target.ROUTER, "python3", "-c", IMPORT_ALL,
        "testbed.lab", "testbed.fidelity", "testbed.contract", "testbed.run.inside",
    )  # fmt: skip
    assert ran.status == 0, ran.out


@BOTH
def test_its_environment_is_the_lab_guests(run: Run, target: Target) -> None:
    ran = run(target, "python3", "-c", "import json, os; print(json.dumps(dict(os.environ)))")
    seen = {k: v for k, v in json.loads(ran.out).items() if k not in ("HOSTNAME", "LC_CTYPE")}
    assert seen == {
        name: value.replace("/mnt/venv", "/opt/venv").replace("/mnt/src", "/opt/src")
        for name, value in guest_environment().items()
    }


@BOTH
def test_all_bytecode_is_there_and_never_checked_against_the_source(
    run: Run, target: Target
) -> None:
    assert run(target, "python3", "-c", UNCOMPILED).out.strip() == "[]"


@pytest.mark.parametrize(("target", "most_mb"), [(Target.ROUTER, 250), (Target.AGENT, 1600)])
def test_it_is_small(images: dict[Target, Image], target: Target, most_mb: int) -> None:
    assert 50e6 < images[target].size_bytes < most_mb * 1e6


def test_one_tree_has_one_name_and_is_built_once(
    engine: Engine,
) -> None:
    first = build_images(engine, cache_root(), print)
    again = build_images(engine, cache_root(), print)
    assert [image.built for image in again] == [False, False]
    assert [(i.name, i.id) for i in again] == [(i.name, i.id) for i in first]


def test_they_are_listed(engine: Engine, images: dict[Target, Image]) -> None:
    listed = {name for stored in list_images(engine) for name in stored.names}
    assert {image.name for image in images.values()} <= listed


def test_the_command_finds_and_lists_them(engine: Engine) -> None:
    def call(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "testbed", "images", *words], capture_output=True, text=True,
            env={**os.environ, "DOCKER_HOST": engine.address}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("build")
    found = json.loads(call("build", "--json"))
    assert [(i["target"], i["built"]) for i in found] == [("router", False), ("agent", False)]
    listed = call("list")
    assert all(i["name"] in listed for i in found)


def test_both_fit_into_one_archive_that_is_written_once(
    engine: Engine, images: dict[Target, Image]
) -> None:
    names = tuple(image.name for image in images.values())
    archive = export_images(engine, names, cache_root())
    with tarfile.open(archive) as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None
        tags = [tag for image in json.load(manifest) for tag in image["RepoTags"]]
    assert sorted(tags) == sorted(names)
    before = archive.stat().st_ino
    again = export_images(engine, names[::-1], cache_root())
    assert (again, again.stat().st_ino) == (archive, before)


def test_nothing_of_this_machine_is_in_an_image(run: Run) -> None:
    ran = run(Target.AGENT, "python3", "-c", "import pathlib; print(*pathlib.Path('/').glob('*'))")
    assert str(Path.cwd()) not in ran.out
    assert run(Target.AGENT, "ls", "/build").status != 0
    assert run(Target.AGENT, "python3", "-c", "import pip").status != 0
