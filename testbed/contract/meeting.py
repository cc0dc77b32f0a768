"""How containers of one run meet: files below ``lab/`` of the run folder that all of them mount.

A file appears whole, under its final name, and is written once. Who waits sleeps in inotify and
looks again at least every second, because some hosts' mounts pass no news of files on.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from testbed.errors import LabError

FOLDER = "lab"
IN_MOVED_TO, IN_CREATE = 0x80, 0x100
_IN_NONBLOCK, _IN_CLOEXEC = 0x800, 0x80000
_LOOK_AGAIN_S = 1.0
_libc = ctypes.CDLL(None, use_errno=True)


class Said(StrEnum):
    """What a node says; a folder each, a file a node."""

    HERE = "here"
    """An agent's container has started, where containers are on their own."""
    BUILT = "built"
    """Devices, addresses, routes and qdiscs are in place."""
    READY = "ready"
    """An agent has loaded what it needs."""
    ENDED = "ended"
    """A node's program ended; the text is its exit status."""
    WORD = "word"
    """What who leads says: ``load`` (the links are measured, agents may load what they need),
    ``barrier`` (nanoseconds of CLOCK_REALTIME) and ``stop``. Where containers are on their own,
    before that: ``measure-<wire>`` (it is this wire's turn)."""
    MEASURED = "measured"
    """What a wire measured of its own links, and the samples that it took of them."""


LOAD, BARRIER, STOP = "load", "barrier", "stop"
MEASURE = "measure-"


class Meeting:
    """The meeting place of one run."""

    def __init__(self, run: Path) -> None:
        self.folder = run / FOLDER

    def open(self) -> None:
        """Makes the folders. Anyone may write: nodes are users of their own, and cannot change
        each other's files (each is made once, by renaming)."""
        for said in Said:
            path = self.folder / said.value
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o777)

    def say(self, said: Said, name: str, text: str = "") -> None:
        """Writes it down, whole."""
        path = self.folder / said.value / name
        draft = path.with_name(f".{name}")
        draft.write_text(text, encoding="utf-8")
        draft.rename(path)

    def heard(self, said: Said, name: str) -> str | None:
        """What ``name`` said, or None."""
        try:
            return (self.folder / said.value / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def number(self, said: Said, name: str) -> int | None:
        """Tells what ``name`` said from what it says anew later; None where it is silent."""
        try:
            return (self.folder / said.value / name).stat().st_ino
        except FileNotFoundError:
            return None

    def names(self, said: Said) -> frozenset[str]:
        """Who said so."""
        return frozenset(
            path.name for path in (self.folder / said.value).iterdir() if path.name[0] != "."
        )

    def wait(self, said: Said, name: str, until_ns: int) -> str:
        """What ``name`` said, as soon as it is said.

        Args:
            until_ns: CLOCK_REALTIME after which it is too late.

        Raises:
            LabError: it was not said in time.
        """
        with self.news(said) as descriptor:
            while (text := self.heard(said, name)) is None:
                left = (until_ns - time.time_ns()) / 1e9
                if left <= 0:
                    raise LabError(
                        "wait for another container", f"{said.value}/{name}", "it never came",
                        "see the logs of that container",
                    )  # fmt: skip
                drain(descriptor, min(left, _LOOK_AGAIN_S))
            return text

    @contextlib.contextmanager
    def news(self, said: Said) -> Iterator[int]:
        """A descriptor that becomes readable when somebody says so."""
        with watched(self.folder / said.value, IN_MOVED_TO | IN_CREATE) as descriptor:
            yield descriptor


@contextlib.contextmanager
def watched(path: Path, events: int) -> Iterator[int]:
    """A descriptor that becomes readable when one of these events happens to a path (inotify(7)).

    Raises:
        LabError: the kernel does not watch it.
    """
    descriptor = _libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
    if descriptor < 0:
        raise LabError("watch a folder", str(path), os.strerror(ctypes.get_errno()))
    try:
        if _libc.inotify_add_watch(descriptor, os.fsencode(path), events) < 0:
            raise LabError("watch a folder", str(path), os.strerror(ctypes.get_errno()))
        yield descriptor
    finally:
        os.close(descriptor)


def drain(descriptor: int, timeout_s: float, also: int | None = None) -> None:
    """Waits for news at most so long, and forgets what it was: the folder itself tells.

    ``also`` ends the wait where it becomes readable, and is left as it is.
    """
    others = [] if also is None else [also]
    ready, _, _ = select.select([descriptor, *others], [], [], timeout_s)
    if descriptor in ready:
        with contextlib.suppress(BlockingIOError):
            os.read(descriptor, 65_536)
