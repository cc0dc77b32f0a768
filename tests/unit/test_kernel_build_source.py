"""Kernel sources: accepted, or refused with the reason before anything is unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.lab.guest.kernel.source import open_source, parse_version

MAKEFILE = "# SPDX-License-Identifier: GPL-2.0\nVERSION = {}\nPATCHLEVEL = {}\nSUBLEVEL = 3\n"


def make_tree(folder: Path, major: int = 6, minor: int = 12) -> Path:
    (folder / "arch" / "um").mkdir(parents=True)
    (folder / "arch" / "um" / "Kconfig").write_text("config UML\n")
    (folder / "Makefile").write_text(MAKEFILE.format(major, minor))
    return folder


def pack(tree: Path, tarball: Path) -> Path:
    with tarfile.open(tarball, "w:xz") as archive:
        archive.add(tree, arcname="linux-x")
    return tarball


@pytest.mark.parametrize("version", [(6, 6), (6, 12), (7, 0)])
def test_trees_and_tarballs_from_6_6_on_are_taken(tmp_path: Path, version: tuple[int, int]) -> None:
    tree = make_tree(tmp_path / "linux", *version)
    assert open_source(tree).version == version
    assert open_source(pack(tree, tmp_path / "linux.tar.xz")).version == version


@pytest.mark.parametrize("version", [(6, 5), (5, 19), (2, 6)])
def test_older_kernels_are_refused_with_the_reason(
    tmp_path: Path, version: tuple[int, int]
) -> None:
    tree = make_tree(tmp_path / "linux", *version)
    for source in (tree, pack(tree, tmp_path / "linux.tar.xz")):
        with pytest.raises(UsageError, match="too old: netem has no generator seed"):
            open_source(source)


def test_a_path_that_is_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        open_source(tmp_path / "linux")


def test_a_folder_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE.format(6, 12))
    with pytest.raises(UsageError, match="arch/um"):
        open_source(tmp_path)


def test_a_file_that_is_no_tarball_is_refused(tmp_path: Path) -> None:
    (tmp_path / "linux.tar.xz").write_bytes(b"not a tarball" * 100)
    with pytest.raises(UsageError, match="not a whole tarball"):
        open_source(tmp_path / "linux.tar.xz")


def test_a_truncated_tarball_is_refused(tmp_path: Path) -> None:
    whole = pack(make_tree(tmp_path / "linux"), tmp_path / "linux.tar.xz")
    (tmp_path / "half.tar.xz").write_bytes(whole.read_bytes()[:60])
    with pytest.raises(UsageError, match="not a whole tarball"):
        open_source(tmp_path / "half.tar.xz")


def test_a_tarball_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="no top-level Makefile"):
        open_source(pack(tmp_path / "other", tmp_path / "other.tar.xz"))


def test_a_tree_that_was_built_in_is_refused_with_the_command_that_cleans_it(
    tmp_path: Path,
) -> None:
    tree = make_tree(tmp_path / "linux")
    (tree / ".config").write_text("")
    with pytest.raises(UsageError, match="mrproper"):
        open_source(tree)


def test_identity_follows_content_and_not_place(tmp_path: Path) -> None:
    one = make_tree(tmp_path / "one")
    two = make_tree(tmp_path / "two")
    before = open_source(one).identity()
    assert open_source(two).identity() == before
    (two / "arch" / "um" / "Kconfig").write_text("config UML2\n")
    assert open_source(two).identity() != before


def test_a_makefile_without_numbers_has_no_version() -> None:
    assert parse_version("VERSION = six\n") is None
