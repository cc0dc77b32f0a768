"""What this host holds for us that ``kill -9`` would leave behind, and who made it.

::

    <cache>/ledger/<pid>-<token>.jsonl      one file a task, held by a file lock
      {"owner": 4711, "start": 123456, "boot": "…"}
      {"action": "acquire", "kind": "folder", "name": "/tmp/testbed-guest-…"}
      {"action": "undo",    "kind": "folder", "name": "/tmp/testbed-guest-…"}

A task removes its file once nothing is open in it. A file whose owner is gone names what is
left; ``testbed gc`` undoes that and nothing else. Things inside a guest end with the guest
and stand in the run's own ``ledger.jsonl``.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

FOLDER = "ledger"
"""Name of the folder of ledgers below the cache."""


class Kind(StrEnum):
    """What can be left behind; each has its own way to be undone."""

    RUN = "run"
    """A run folder: evidence, so it is marked and never removed."""
    FOLDER = "folder"
    """A folder for the time of a task: removed with all that is in it."""
    BUILD = "build"
    """The folder of a kernel build, which has a lock of its own: removed."""
    LOCK = "lock"
    """A lock file: removed while its lock is held."""
    ENGINE = "engine"
    """The folder of a private Engine's socket and process id: the Engine is ended."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that no other one can be taken for, although process ids come again.

    Attributes:
        owner: process id.
        start: when it started, in clock ticks since boot (proc(5), stat, field 22).
        boot: the kernel's boot id, as ticks and ids start anew with every boot.
    """

    owner: int
    start: int
    boot: str

    @classmethod
    def this_process(cls) -> Owner:
        """The process that asks."""
        return cls(os.getpid(), start_of(os.getpid()) or 0, boot_id())

    @property
    def lives(self) -> bool:
        """Whether the process is still there, and is the same one."""
        return self.boot == boot_id() and start_of(self.owner) == self.start


def start_of(pid: int) -> int | None:
    """Start of a process in ticks since boot; None where there is none, or only its remains."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = text[text.rindex(")") + 1 :].split()  # the name before may hold anything
    return None if state in "ZX" else int(fields[18])


def boot_id() -> str:
    """Identity of this boot of the host."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class HostLedger:
    """The open things of one task on the host. Write down first, make then."""

    def __init__(self, cache: Path) -> None:
        """Opens a new file below ``cache``.

        Raises:
            OSError: it cannot be written.
        """
        folder = cache / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{os.getpid()}-{secrets.token_hex(8)}.jsonl"
        self._file = self.path.open("x", encoding="utf-8", buffering=1)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._open: set[tuple[Kind, Path]] = set()
        self._line(asdict(Owner.this_process()))

    def acquire(self, kind: Kind, path: Path) -> Path:
        """Writes down what is about to be made; returns its absolute path."""
        path = path.absolute()
        self._open.add((kind, path))
        self._line({"action": "acquire", "kind": kind, "name": str(path)})
        return path

    def release(self, kind: Kind, path: Path) -> None:
        """Writes down that it is no more, was never made, or needs no undoing any longer."""
        path = path.absolute()
        self._line({"action": "undo", "kind": kind, "name": str(path)})
        self._open.discard((kind, path))

    @contextmanager
    def scratch(self, parent: Path, prefix: str) -> Iterator[Path]:
        """A new folder of a name not told before (few letters: sockets lie in some)."""
        while True:
            folder = self.acquire(Kind.FOLDER, parent / f"{prefix}{secrets.token_hex(4)}")
            try:
                folder.mkdir(mode=0o700)
                break
            except FileExistsError:
                self.release(Kind.FOLDER, folder)
            except OSError:
                self.release(Kind.FOLDER, folder)
                raise
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                self.release(Kind.FOLDER, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._open:
            self.path.unlink(missing_ok=True)
        self._file.close()

    def _line(self, content: dict[str, object]) -> None:
        self._file.write(json.dumps(content) + "\n")
