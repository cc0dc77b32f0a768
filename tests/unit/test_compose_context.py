"""Names of images: equal content is an equal name, and any change is another one."""

from __future__ import annotations

import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.lab.compose.archive import archive_key
from testbed.lab.compose.context import (
    ContextFile,
    code_files,
    digest_of,
    recipe_files,
    write_context,
)
from testbed.lab.compose.images import Recipe, Target
from testbed.lab.compose.rootimage import RootImage
from testbed.lab.compose.wheels import Torch, torch_kind, wheels_key

pytestmark = pytest.mark.unit

RECIPE = Recipe(RootImage("pdd-testbed/debian:0", "0" * 64), Torch.CPU, "a", "b", "c")


def files(folder: Path, **contents: str) -> tuple[ContextFile, ...]:
    folder.mkdir()
    for name, text in contents.items():
        (folder / name).write_text(text)
    return tuple(ContextFile(name, folder / name) for name in contents)


def test_a_context_depends_on_names_and_contents_only(tmp_path: Path) -> None:
    one = files(tmp_path / "one", a="x", b="y")
    two = files(tmp_path / "two", b="y", a="x")
    os.utime(two[0].path, (1, 1))
    two[1].path.chmod(0o600)
    assert digest_of(one) == digest_of(two)
    for number, which in enumerate((one, two)):
        write_context(tmp_path / f"{number}.tar", which)
    assert (tmp_path / "0.tar").read_bytes() == (tmp_path / "1.tar").read_bytes()
    with tarfile.open(tmp_path / "0.tar") as tar:
        assert [(e.name, e.mode, e.uid, e.mtime) for e in tar] == [
            ("a", 0o644, 0, 0), ("b", 0o644, 0, 0),
        ]  # fmt: skip


def test_another_content_or_name_is_another_digest(tmp_path: Path) -> None:
    seen = {
        digest_of(files(tmp_path / "1", a="x", b="y")),
        digest_of(files(tmp_path / "2", a="x", b="z")),
        digest_of(files(tmp_path / "3", a="x", c="y")),
        digest_of(files(tmp_path / "4", a="xb", c="")),
    }
    assert len(seen) == 4


def test_the_context_of_this_tree_has_code_data_and_recipe() -> None:
    names = {file.name for file in (*recipe_files(), *code_files())}
    assert names >= {
        "agents/Dockerfile", "agents/requirements-agent.txt", "testbed/errors.py",
        "agents/testbed_agents/zygote.py", "topologies/mn.py",
    }  # fmt: skip
    assert not any("__pycache__" in name or name.startswith("tests/") for name in names)


@pytest.mark.parametrize(
    "other",
    [
        replace(RECIPE, root=RootImage("pdd-testbed/debian:0", "1" * 64)),
        replace(RECIPE, torch=Torch.CUDA),
        replace(RECIPE, recipe_digest="x"),
        replace(RECIPE, code_digest="x"),
        replace(RECIPE, wheels_digest="x"),
    ],
)
def test_whatever_goes_in_changes_the_name(other: Recipe) -> None:
    for target in Target:
        assert other.name(target) != RECIPE.name(target)


def test_what_a_base_is_called_does_not_matter() -> None:
    renamed = replace(RECIPE, root=RootImage("mirror.example/debian:x", "0" * 64))
    assert renamed.name(Target.AGENT) == RECIPE.name(Target.AGENT)
    assert RECIPE.name(Target.AGENT) != RECIPE.name(Target.ROUTER)


def test_an_archive_is_named_by_its_images_in_any_order() -> None:
    assert archive_key(("a", "b")) == archive_key(("b", "a"))
    assert archive_key(("a", "b")) != archive_key(("a",))


def test_packages_of_other_pins_lie_elsewhere() -> None:
    one = wheels_key("torch==1\n", Torch.CPU, "")
    assert one == wheels_key("torch==1\n", Torch.CPU, "")
    assert len({one, wheels_key("torch==2\n", Torch.CPU, ""),
                wheels_key("torch==1\n", Torch.CUDA, ""),
                wheels_key("torch==1\n", Torch.CPU, "file:///mirror")}) == 4  # fmt: skip


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\nhip = None\n", Torch.CPU),
        ("__version__ = '2.13.0'\ncuda: Optional[str] = '13.0'\nhip = None\n", Torch.CUDA),
    ],
)
def test_the_kind_of_torch_is_read_from_its_version_file(version: str, kind: Torch) -> None:
    assert torch_kind(version) is kind
