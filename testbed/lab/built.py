"""What is built by entering it and undone by leaving it, through the ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from testbed.lab.ledger import Ledger


class Built(ABC):
    """A context manager: entering builds, leaving undoes everything in the ledger.

    A failure while building undoes what was made by then. A failure to undo is raised only
    where no other error is on its way.
    """

    def __init__(self, ledger: Ledger) -> None:
        """Nothing happens before it is entered."""
        self.ledger = ledger

    @abstractmethod
    def _build(self) -> None:
        """Makes everything, each thing written into the ledger first."""

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self.ledger.undo_all()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        faults = self.ledger.undo_all()
        if faults and error is None:
            raise faults[0]
