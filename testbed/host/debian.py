"""System packages: which are needed and why, which are missing, how to add them.

A package counts as present when what it is wanted for is there, so that another
distribution or a hand-made installation works as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ATTEMPTS = 3


class Purpose(StrEnum):
    """What a package is for."""

    SETUP = "set-up"
    KERNEL = "kernel build"
    LAB = "lab"
    TESTS = "tests"
    CONTAINERS = "containers"


@dataclass(frozen=True, slots=True)
class Package:
    """A Debian package and the command or file that shows that it is there."""

    name: str
    purpose: Purpose
    shown_by: str

    def present(self) -> bool:
        """Whether the command can be found, or the file exists."""
        if self.shown_by.startswith("/"):
            return any(Path("/").glob(self.shown_by.lstrip("/")))
        path = f"{os.environ.get('PATH', '')}:{_FOLDERS}"
        return shutil.which(self.shown_by, path=path) is not None


PACKAGES = (
    Package("python3-venv", Purpose.SETUP, "/usr/lib/python3.*/ensurepip/__init__.py"),
    Package("linux-source-6.12", Purpose.KERNEL, "/usr/src/linux-source-6.12.tar.xz"),
    Package("gcc", Purpose.KERNEL, "gcc"),
    Package("libc6-dev", Purpose.KERNEL, "/usr/include/stdlib.h"),
    Package("make", Purpose.KERNEL, "make"),
    Package("flex", Purpose.KERNEL, "flex"),
    Package("bison", Purpose.KERNEL, "bison"),
    Package("bc", Purpose.KERNEL, "bc"),
    Package("xz-utils", Purpose.KERNEL, "xz"),
    Package("libelf-dev", Purpose.KERNEL, "/usr/include/libelf.h"),
    Package("mininet", Purpose.LAB, "mnexec"),
    Package("iproute2", Purpose.LAB, "tc"),
    Package("iputils-ping", Purpose.LAB, "ping"),
    Package("net-tools", Purpose.LAB, "ifconfig"),
    Package("kmod", Purpose.LAB, "modprobe"),
    Package("util-linux", Purpose.LAB, "setarch"),
    Package("procps", Purpose.LAB, "ps"),
    Package("ethtool", Purpose.LAB, "ethtool"),
    Package("iperf3", Purpose.LAB, "iperf3"),
    Package("tcpdump", Purpose.LAB, "tcpdump"),
    Package("chromium", Purpose.TESTS, "chromium"),
    Package("docker.io", Purpose.CONTAINERS, "dockerd"),
    Package("iptables", Purpose.CONTAINERS, "iptables"),
    Package("e2fsprogs", Purpose.CONTAINERS, "mkfs.ext4"),
)
"""All of them; those for tests are wanted only by ``make test``, those for containers only by
``make setup-containers``."""

OPTIONAL = frozenset({Purpose.TESTS, Purpose.CONTAINERS})
"""Purposes that set-up serves only when it is asked to."""


def missing(extras: frozenset[Purpose] = frozenset()) -> tuple[Package, ...]:
    """The packages that are not there.

    Args:
        extras: those of ``OPTIONAL`` that are wanted.
    """
    wanted = (p for p in PACKAGES if p.purpose in extras or p.purpose not in OPTIONAL)
    return tuple(package for package in wanted if not package.present())


def install_line(packages: tuple[Package, ...]) -> str:
    """The one command that adds them, for an administrator to run."""
    names = " ".join(package.name for package in packages)
    return f"apt-get update && apt-get install -y --no-install-recommends {names}"


def install(packages: tuple[Package, ...]) -> bool:
    """Installs them with apt (needs root); whether all are there afterwards.

    Package mirrors fail now and then, so each step is tried several times.
    """
    names = [package.name for package in packages]
    apt = ["apt-get", "-q", "-o", "Acquire::Retries=3", "-o", "Dpkg::Use-Pty=0"]
    said = ""
    for _ in range(_ATTEMPTS):
        updated, said = _apt([*apt, "update"])
        installed, words = _apt([*apt, "install", "-y", "--no-install-recommends", *names])
        said += words
        if updated and installed:
            break
    done = all(package.present() for package in packages)
    if not done:
        print(said, file=sys.stderr)
    return done


def _apt(argv: list[str]) -> tuple[bool, str]:
    """Whether the command succeeded, and what it said if not."""
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        return False, f"{argv[0]}: {error.strerror}\n"
    return done.returncode == 0, "" if done.returncode == 0 else done.stdout
