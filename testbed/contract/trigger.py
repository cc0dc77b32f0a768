"""Faults that begin when something happens: what is waited for, and how others are told of it.

The sender of the pair sees it. Who else is to act is told by a file in the run folder, so that
nothing of the network under test is used: it appears whole, and its text is the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field

from testbed.contract.meeting import IN_CREATE, IN_MOVED_TO, watched
from testbed.contract.record import Record

_FOLDER = "reached"


class Trigger(Record):
    """The ``transfer``-th of a pair, from 1, has ``progress`` of its bytes on the wire."""

    sender: str
    receiver: str
    transfer: int = Field(gt=0)
    progress: float = Field(ge=0, le=1)


class Watch(Record):
    """What a sender waits for on behalf of a fault."""

    fault: str
    trigger: Trigger


class Reached:
    """Which triggers of a run have been seen."""

    def __init__(self, run: Path) -> None:
        self._folder = run / _FOLDER

    def open(self) -> None:
        """Makes the folder. Agents are users of their own."""
        self._folder.mkdir(exist_ok=True)
        self._folder.chmod(0o777)

    def tell(self, fault: str, request: int) -> None:
        """The trigger of ``fault`` was seen, in the transfer of ``request``."""
        draft = self._folder / f".{fault}"
        draft.write_text(str(request), encoding="ascii")
        draft.rename(self._folder / fault)

    def request(self, fault: str) -> int | None:
        """In whose transfer the trigger of ``fault`` was seen; None where it was not yet."""
        try:
            return int((self._folder / fault).read_text(encoding="ascii"))
        except FileNotFoundError:
            return None

    @contextmanager
    def news(self) -> Iterator[int]:
        """A descriptor that becomes readable when another trigger was seen."""
        with watched(self._folder, IN_MOVED_TO | IN_CREATE) as descriptor:
            yield descriptor
