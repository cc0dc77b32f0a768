"""Packages for the images, collected on this machine, so that a build needs no network.

::

    <cache>/wheels/<key>/*.whl, manifest.json     one folder for one set of pins

pip runs here with this machine's own configuration (mirrors, folders, certificates); what reaches
an image is the wheels and nothing of that. The manifest is written last.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from testbed.errors import HostError
from testbed.lab.compose.refusal import refusal
from testbed.lab.hostledger import HostLedger

FOLDER = "wheels"
"""Name of the folder of collected packages below the cache."""
_MANIFEST = "manifest.json"
_REVISION = 1
_EPOCH = "1767225600"
"""Date in wheels that are built here: the same pins give the same bytes."""


class Torch(StrEnum):
    """Which build of torch goes into ``agent``."""

    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True)
class Wheels:
    """Collected packages: where they lie, and the SHA-256 of each."""

    folder: Path
    digests: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        """Identity of all packages."""
        return hashlib.sha256(json.dumps(self.digests).encode()).hexdigest()


def wheels_key(requirements: str, torch: Torch, index: str) -> str:
    """Name of the folder for these pins, as this machine's Python takes them."""
    about = (str(_REVISION), requirements, torch.value, index, platform.machine())
    return hashlib.sha256("\0".join(about).encode()).hexdigest()[:16]


def collected_wheels(
    requirements: Path, torch: Torch, cache: Path, say: Callable[[str], None]
) -> Wheels:
    """The wheels of a requirements file; collected first where they are not there.

    The environment variable TORCH_INDEX names an extra index for torch.

    Raises:
        HostError: a package is not to be had, or torch is of the other kind.
    """
    index = os.environ.get("TORCH_INDEX", "")
    target = cache / FOLDER / wheels_key(requirements.read_text("utf-8"), torch, index)
    if not (target / _MANIFEST).is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with HostLedger(cache) as ledger, ledger.scratch(target.parent, "making-") as making:
            say("collecting packages (a minute or more)")
            _collect(requirements, torch, index, making)
            _refuse_other_torch(making, torch)
            digests = [(path.name, _digest(path)) for path in sorted(making.glob("*.whl"))]
            (making / _MANIFEST).write_text(json.dumps(digests, indent=1), "utf-8")
            making.chmod(0o755)
            try:
                making.rename(target)
            except OSError:
                if not (target / _MANIFEST).is_file():
                    raise
    listed = json.loads((target / _MANIFEST).read_text("utf-8"))
    return Wheels(target, tuple((str(name), str(digest)) for name, digest in listed))


def _collect(requirements: Path, torch: Torch, index: str, folder: Path) -> None:
    extra = ("--extra-index-url", index) if index else ()
    _pip("wheel", "--no-deps", *extra, "-w", str(folder), "-r", str(requirements))
    if torch is Torch.CUDA:
        pin = re.search(r"^torch==.*$", requirements.read_text("utf-8"), re.MULTILINE)
        if pin is None:
            raise HostError("collect packages", str(requirements), "it does not name torch")
        _pip("wheel", *extra, "-w", str(folder), "-c", str(requirements), pin[0])


def _pip(*arguments: str) -> None:
    environment = {
        **os.environ, "SOURCE_DATE_EPOCH": _EPOCH, "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
    }  # fmt: skip
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-m", "pip", *arguments],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise refusal("collect packages", " ".join(("pip", *arguments[:1])), done.stdout)


def _refuse_other_torch(folder: Path, wanted: Torch) -> None:
    """Raises HostError where the build of torch is not the wanted one (by its version.py)."""
    for path in folder.glob("torch-*.whl"):
        with zipfile.ZipFile(path) as wheel:
            version = wheel.read("torch/version.py").decode("utf-8", "replace")
        if torch_kind(version) is not wanted:
            raise HostError(
                "collect packages", path.name,
                f"it is a build for {torch_kind(version).value}, not for {wanted.value}",
                "name an index that has the wanted one in TORCH_INDEX, or choose the other: "
                f"--torch {torch_kind(version).value}",
            )  # fmt: skip


def torch_kind(version: str) -> Torch:
    """The kind of build that the text of torch/version.py tells."""
    return Torch.CPU if re.search(r"^cuda\b[^=]*= None", version, re.MULTILINE) else Torch.CUDA


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
