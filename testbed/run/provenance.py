"""Where a run comes from: commit, command line, hashes, seed, kernel, tool versions."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import testbed
from testbed.contract.defect import Defect
from testbed.lab.guest.boot import Kernel, cpu_capability
from testbed.lab.guest.snapshot import code_digest
from testbed.lab.program import run_program

_TOOLS = ("torch", "transformers", "mininet", "pyroute2", "pyzmq", "pydantic", "pandas", "numpy")


def _git(*words: str) -> str | None:
    """One line of git's answer about the checkout this package lies in, or None."""
    try:
        done = run_program("git", "-C", str(Path(testbed.__file__).parent), *words, timeout_s=10.0)
    except (OSError, TimeoutError):
        return None
    return done.out.strip() if done.status == 0 else None


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def provenance(
    seed: int, kernel: Kernel | None, scenario_yaml: str, defects: Sequence[Defect] = ()
) -> dict[str, object]:
    """All that says whether two runs may be compared; ``kernel`` is None on the host's own.

    ``defects`` are the protections that are off.
    """
    dirty = _git("status", "--porcelain")
    return {
        "testbed": testbed.__version__,
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if dirty is None else bool(dirty),
        "code_sha256": code_digest(),
        "command": sys.argv,
        "scenario_sha256": hashlib.sha256(scenario_yaml.encode()).hexdigest(),
        "seed": seed,
        **({"protections_off": [one.value for one in defects]} if defects else {}),
        "kernel_sha256": None if kernel is None else file_digest(kernel.linux),
        "entropy_sha256": None if kernel is None else file_digest(kernel.entropy),
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
        "cpu_capability": cpu_capability(),
        "host_kernel": platform.release(),
        "user": "root" if os.geteuid() == 0 else "ordinary",
        "tools": {name: importlib.metadata.version(name) for name in _TOOLS},
    }
