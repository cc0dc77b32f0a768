"""Runs inside the guest: plain ``docker compose up`` in a copy of a project folder.

Reads ``up.json`` of the run folder: {"project": folder below it, "environment": {variable: value},
"options": [arguments before ``up``], "words": [after it]}; writes ``answers.json``, Compose's words
into ``logs/``, and what the containers left in ``runs`` of the project.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from testbed.contract.progress import FOLDER, Mark
from testbed.lab.compose.guestengine import SOCKET, GuestEngine
from testbed.lab.compose.guestimage import PROGRAMS
from testbed.lab.ledger import Ledger

RUN = Path("/mnt/run")
ENGINE = Path("/mnt/engine")
PROJECT = Path("/run/project")
"""On a memory file system: the host's own file system knows no users but the caller."""
MOST_S = 1800


class Compose:
    """The plugin, called as a user calls it."""

    def __init__(self, order: dict[str, object], mark: Mark) -> None:
        more = order["environment"]
        assert isinstance(more, dict)
        self._environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp",
            "DOCKER_HOST": f"unix://{SOCKET}", **more,
        }  # fmt: skip
        self._mark = mark

    def call(self, log: str, *words: str) -> tuple[int, float]:
        """(exit status, seconds); all output goes to a log."""
        began = time.monotonic()
        with (RUN / "logs" / log).open("wb") as stream:
            process = subprocess.Popen(
                [str(ENGINE / PROGRAMS / "docker-compose"), *words], cwd=PROJECT,
                env=self._environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            )  # fmt: skip
            while process.poll() is None:
                self._mark.touch(time.time_ns())
                if time.monotonic() - began > MOST_S:
                    process.kill()
                try:
                    process.wait(2)
                except subprocess.TimeoutExpired:
                    continue
        return process.returncode, time.monotonic() - began


def main() -> int:
    order = json.loads((RUN / "up.json").read_text(encoding="utf-8"))
    mark = Mark(RUN / FOLDER, "up")
    shutil.copytree(RUN / str(order["project"]), PROJECT)
    if "owner" in order:
        (PROJECT / "runs").mkdir()
        os.chown(PROJECT / "runs", order["owner"], order["owner"])
    ledger = Ledger(RUN / "ledger.jsonl")
    answers: dict[str, object] = {}
    began = time.monotonic()
    with GuestEngine(ENGINE, RUN / "logs", ledger) as engine:
        answers["engine_s"] = time.monotonic() - began
        compose = Compose(order, mark)
        answers["up_began_ns"] = time.time_ns()
        answers["up"] = compose.call(
            "up.log", *order.get("options", ()), "up", "--exit-code-from", "client",
            *order.get("words", ()),
        )  # fmt: skip
        answers["down"] = compose.call("down.log", *order.get("options", ()), "down")
        answers["containers"] = [one.name for one in engine.client.containers.list(all=True)]
        answers["networks"] = sorted(
            one.name for one in engine.client.networks.list() if one.name not in ("none", "host")
        )
    shutil.copytree(PROJECT / "runs", RUN / "runs", copy_function=shutil.copy2)
    (RUN / "answers.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")
    ledger.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
