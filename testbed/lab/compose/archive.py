"""Images of an Engine as one archive in the cache, for another Engine to load.

::

    <cache>/archives/<digest over the images' ids>.tar     as ``docker save`` writes it
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from testbed.errors import HostError
from testbed.lab.compose.engine import Engine
from testbed.lab.hostledger import HostLedger

_FOLDER = "archives"
_KEPT = 2


def archive_key(ids: tuple[str, ...]) -> str:
    """Names the archive that holds these images, in whatever order they are given."""
    return hashlib.sha256(json.dumps(sorted(ids)).encode()).hexdigest()[:24]


def export_images(engine: Engine, names: tuple[str, ...], cache: Path) -> Path:
    """The archive with these images; written first where it is not there.

    Archives that were not used for longest are forgotten.

    Raises:
        HostError: an image is not there, or the disk is full.
    """
    folder = cache / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    ids = []
    for name in names:
        stored = engine.image(name)
        if stored is None:
            raise HostError(
                "export images", name, f"it is not in the Engine {engine.address}",
                "testbed images build",
            )  # fmt: skip
        ids.append(stored.id)
    target = folder / f"{archive_key(tuple(ids))}.tar"
    if not target.is_file():
        with HostLedger(cache) as ledger, ledger.scratch(folder, "making-") as making:
            engine.save(names, making / "images.tar")
            (making / "images.tar").rename(target)
        _forget_oldest(folder)
    os.utime(target)
    return target


def _forget_oldest(folder: Path) -> None:
    archives = sorted(folder.glob("*.tar"), key=lambda path: path.stat().st_mtime)
    for old in archives[:-_KEPT]:
        old.unlink(missing_ok=True)
