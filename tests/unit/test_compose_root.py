"""A base image's root: what goes in, in which order, and that it is always the same bytes."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from testbed.errors import HostError
from testbed.lab.compose.roottar import files_below, is_kept, write_root
from testbed.lab.compose.roottree import Installed

pytestmark = pytest.mark.unit

LISTED = """\
python3\tno\tinstalled\tlibc6 (>= 2.30)\tpython3.11 (>= 3.11.2-1~), libpython3-stdlib (= 3.11.2)\t
python3.11\tno\tinstalled\t\tlibc6, media-types | mime-support, tzdata:any\t
libpython3-stdlib\tno\tinstalled\t\t\t
media-types\tno\tinstalled\t\t\tmime-support
libc6\tno\tinstalled\t\tlibgcc-s1, libcrypt1 (>= 1:4.4.10-10~)\t
libgcc-s1\tno\tinstalled\t\t\t
libcrypt1\tno\tinstalled\t\t\t
tzdata\tno\tinstalled\t\t\t
mawk\tno\tinstalled\t\tlibc6\tawk
base-files\tyes\tinstalled\tawk\t\tbase
old\tyes\tconfig-files\t\tgone\t
"""


def test_a_root_has_what_is_wanted_what_is_essential_and_their_needs() -> None:
    assert Installed(LISTED).closure(("python3",)) == (
        "base-files", "libc6", "libcrypt1", "libgcc-s1", "libpython3-stdlib", "mawk",
        "media-types", "python3", "python3.11", "tzdata",
    )  # fmt: skip


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(HostError, match="tcpdump: the package is not installed"):
        Installed(LISTED).closure(("python3", "tcpdump"))


def tree(folder: Path) -> Path:
    for name in ("usr/bin/tool", "etc/passwd", "etc/machine-id", "var/log/dpkg.log",
                 "var/cache/apt/x", "usr/share/doc/x/README", "usr/lib/m.py",
                 "usr/lib/__pycache__/m.pyc"):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "usr/bin/tool").chmod(0o755)
    (folder / "bin").symlink_to("usr/bin")
    return folder


def test_two_roots_of_one_content_are_the_same_bytes(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one"), tree(tmp_path / "two")
    (two / "etc/machine-id").write_text("another")
    (two / "var/log/dpkg.log").write_text("later")
    os.utime(two / "etc/passwd", (1, 1))
    digests = [write_root(tmp_path / f"{t.name}.tar", files_below(t)) for t in (one, two)]
    assert digests[0] == digests[1]
    (two / "etc/passwd").write_text("x")
    assert write_root(tmp_path / "3.tar", files_below(two)) != digests[0]


def test_an_archive_has_files_links_modes_and_the_folders_that_a_root_needs(tmp_path: Path) -> None:
    write_root(tmp_path / "root.tar", files_below(tree(tmp_path / "root")))
    with tarfile.open(tmp_path / "root.tar") as tar:
        entries = {entry.name: entry for entry in tar}
    assert list(entries) == sorted(entries)
    assert entries["bin"].linkname == "usr/bin"
    assert entries["usr/bin/tool"].mode == 0o755
    assert entries["tmp"].mode == 0o1777
    assert entries["proc"].isdir()
    gone = {"etc/machine-id", "var/log/dpkg.log", "var/cache/apt/x", "usr/share/doc/x/README",
            "usr/lib/__pycache__", "usr/lib/__pycache__/m.pyc"}  # fmt: skip
    assert not gone & set(entries)


@pytest.mark.parametrize(
    "name", ["tmp", "var/cache", "usr/lib/m.py", "rooted/x", "etc/machine-id2"]
)
def test_what_only_looks_like_something_dropped_is_kept(name: str) -> None:
    assert is_kept(name)
