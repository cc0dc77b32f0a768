"""A small Debian root file system with Python 3.11, from a package mirror or from this machine.

Both ways give a folder or a list of files that ``roottar.py`` turns into an archive. Nothing here
knows an Engine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from testbed.errors import HostError
from testbed.lab.compose.refusal import refusal

SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "libstdc++6", "iproute2", "iputils-ping", "tcpdump")
"""What is wanted beyond a minimal root: numeric wheels take the C++ library from the system; the
last three are to look inside a running container."""
_FORMAT = "${Package}\t${Essential}\t${db:Status-Status}\t${Pre-Depends}\t${Depends}\t${Provides}\n"
_NAME = re.compile(r"^[a-z0-9][a-z0-9.+-]*")


def can_debootstrap() -> bool:
    """Whether a root can be made from a mirror here: it needs root and debootstrap."""
    return os.geteuid() == 0 and shutil.which("debootstrap") is not None


def make_from_mirror(folder: Path, mirror: str = "") -> None:
    """Fills ``folder`` with a minimal Debian root.

    It runs in mount and process namespaces of its own: whatever it mounts or starts
    in there ends with it, even if it is killed.

    Args:
        folder: an empty folder.
        mirror: address of a mirror; empty: debootstrap's own.

    Raises:
        HostError: it failed; its last words are quoted.
    """
    argv = [
        "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
        "debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(folder),
    ]  # fmt: skip
    done = subprocess.run(
        [*argv, *((mirror,) if mirror else ())],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **_proxies()},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        log = folder / "debootstrap" / "debootstrap.log"
        words = log.read_text("utf-8", "replace") if log.is_file() else ""
        raise refusal(
            "make a base image", f"debootstrap {SUITE}", f"{done.stdout}\n{words[-2000:]}",
            "take --base local, or name an image with --base",
        )  # fmt: skip


def _proxies() -> dict[str, str]:
    names = ("http_proxy", "https_proxy", "no_proxy", "DEBOOTSTRAP_MIRROR")
    return {name: os.environ[name] for name in names if name in os.environ}


class Installed:
    """The packages of this machine, as dpkg tells them."""

    def __init__(self, listed: str) -> None:
        """Args: listed: lines of ``dpkg-query -W`` in the format of this module."""
        self._needs: dict[str, tuple[tuple[str, ...], ...]] = {}
        self._provided: dict[str, str] = {}
        self.essential: set[str] = set()
        for line in listed.splitlines():
            name, essential, status, before, after, provides = line.split("\t")
            if status != "installed":
                continue
            self._needs[name] = _alternatives(f"{before}, {after}")
            self._provided.setdefault(name, name)
            for (provided,) in (a[:1] for a in _alternatives(provides)):
                self._provided.setdefault(provided, name)
            if essential == "yes":
                self.essential.add(name)

    def closure(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """``wanted``, what is essential, and all that they need, in the order of their names.

        Raises:
            HostError: something that is needed is not installed.
        """
        found: set[str] = set()
        todo = [*wanted, *self.essential]
        while todo:
            name = todo.pop()
            package = self._provided.get(name)
            if package is None:
                raise HostError(
                    "make a base image from this machine", name, "the package is not installed",
                    f"apt-get install {name}, or take --base debian",
                )  # fmt: skip
            if package not in found:
                found.add(package)
                todo += [self._choice(a) for a in self._needs[package]]
        return tuple(sorted(found))

    def _choice(self, alternatives: tuple[str, ...]) -> str:
        """The first alternative that is there; else the first, which is then told as missing."""
        return next((a for a in alternatives if a in self._provided), alternatives[0])


def _alternatives(relation: str) -> tuple[tuple[str, ...], ...]:
    """``a (>= 1) | b, c:any`` → ((a, b), (c,))."""
    return tuple(
        tuple(match[0] for part in clause.split("|") if (match := _NAME.match(part.strip())))
        for clause in relation.split(",")
        if clause.strip()
    )


def files_of_this_machine() -> Mapping[str, Path]:
    """Path inside (no leading slash) → path here, of a minimal root with Python.

    Raises:
        HostError: this is no Debian with Python 3.11, or a package is missing.
    """
    if not Path("/usr/lib/python3.11").is_dir() or shutil.which("dpkg-query") is None:
        raise HostError(
            "make a base image from this machine", "/usr/lib/python3.11",
            "this is no Debian with Python 3.11", "name an image with --base",
        )  # fmt: skip
    packages = Installed(_ask("-W", f"-f={_FORMAT}")).closure(PACKAGES)
    listed = _ask("-L", *packages).splitlines()
    found: dict[str, Path] = {}
    for name in (*listed, *_NOT_OF_A_PACKAGE):
        if name.startswith("/") and not _left_out(name):
            _add(found, name)
    return dict(sorted(found.items()))


_NOT_OF_A_PACKAGE = (
    "/bin", "/sbin", "/lib", "/lib64", "/etc/passwd", "/etc/group", "/etc/ld.so.cache",
    "/etc/nsswitch.conf", "/usr/bin/awk", "/etc/alternatives/awk", "/tmp",
)  # fmt: skip
_LEFT_OUT = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/")


def _left_out(name: str) -> bool:
    return name.startswith(_LEFT_OUT) and not name.endswith("/copyright")


def _add(found: dict[str, Path], name: str) -> None:
    """Adds one path under the name that it has when links of its folders are followed."""
    path = Path(os.path.realpath(os.path.dirname(name))) / os.path.basename(name)
    if os.path.lexists(path):
        found.setdefault(str(path).lstrip("/"), path)


def _ask(*arguments: str) -> str:
    done = subprocess.run(
        ["dpkg-query", *arguments], capture_output=True, text=True, errors="replace", check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise refusal("ask for installed packages", "dpkg-query", done.stderr)
    return done.stdout
