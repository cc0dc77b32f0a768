"""Where the repository under test lies, and which files belong to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = (ROOT / "testbed", ROOT / "agents" / "testbed_agents")


def text_files() -> tuple[Path, ...]:
    """Every file that is tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(path for path in paths if path.is_file())


def modules() -> tuple[Path, ...]:
    """Every Python file of the two packages."""
    return tuple(sorted(path for package in PACKAGES for path in package.rglob("*.py")))


def lines_of(path: Path) -> list[str]:
    """The lines of a text file."""
    return path.read_text("utf-8").splitlines()
