"""Runs inside the guest: loads an archive of images into an Engine whose disk is to be kept.

Reads ``images.tar`` and ``stock.json`` of the run folder and fills the disk below /mnt/engine.
Writes ``failure.json`` for the host to raise where something is wrong with the archive.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from docker.errors import APIError, ImageNotFound

from testbed.contract.progress import FOLDER, Mark
from testbed.errors import ExitStatus, LabError
from testbed.lab.compose.guestengine import ROOT, GuestEngine
from testbed.lab.compose.loopdevice import mount_disk
from testbed.lab.ledger import Ledger

_CHUNK = 1 << 20
_FOLDER = Path("/mnt/engine")


def _read(archive: Path, mark: Mark) -> Iterator[bytes]:
    with archive.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            mark.touch(time.time_ns())
            yield chunk


def stock_up(run: Path, mark: Mark) -> None:
    """Loads the archive and looks whether every image is there.

    Raises:
        LabError: the archive is damaged, or lacks an image.
    """
    archive = run / "images.tar"
    wanted = json.loads((run / "stock.json").read_text(encoding="utf-8"))
    ledger = Ledger(run / "ledger.jsonl")
    try:
        unpacking = ROOT / "unpacking"
        mount_disk(ledger, run / "unpacking.ext4", unpacking)
        settings = {"DOCKER_TMPDIR": str(unpacking)}
        with GuestEngine(_FOLDER, run / "logs", ledger, settings) as engine:
            api = engine.client.api
            try:
                for line in api.load_image(_read(archive, mark), quiet=False):
                    mark.touch(time.time_ns())
                    if "error" in line:
                        raise LabError("load images", str(archive), str(line["error"]))
            except APIError as error:
                raise LabError(
                    "load images", str(archive), f"the archive is damaged: {error.explanation}",
                    "export the images again",
                ) from error  # fmt: skip
            for name, identity in wanted:
                try:
                    found = api.inspect_image(name)["Id"]
                except ImageNotFound:
                    found = "nothing of that name"
                if found != identity:
                    raise LabError(
                        "load images", name, f"the archive holds {found} instead of {identity}",
                        "export the images again",
                    )  # fmt: skip
    finally:
        ledger.close()


def main(folder: str) -> int:
    """Returns the exit status for the host."""
    run = Path(folder)
    try:
        stock_up(run, Mark(run / FOLDER, "stocking"))
    except LabError as error:
        failure = {
            "attempt": error.attempt, "subject": error.subject, "cause": error.cause,
            "remedy": error.remedy,
        }  # fmt: skip
        (run / "failure.json").write_text(json.dumps(failure), encoding="utf-8")
        return int(ExitStatus.INVALID)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
