"""Faults that the lab applies when an agent has seen what they wait for."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from testbed.contract.fault import AgentFault, PlannedFault
from testbed.contract.meeting import drain
from testbed.contract.trigger import Reached
from testbed.lab.faults import LabFault
from testbed.run.deed import Deed, deeds_of


class Awaited:
    """Those of one run. A context manager: inside, ``news`` becomes readable when one comes."""

    def __init__(self, faults: Iterable[PlannedFault], reached: Reached) -> None:
        self._waiting: dict[str, LabFault] = {
            fault.name: fault
            for fault in faults
            if not isinstance(fault, AgentFault) and fault.trigger is not None
        }
        self._reached = reached
        self._open = ExitStack()
        self.news: int | None = None
        """None where nothing is waited for."""

    def __enter__(self) -> Self:
        if self._waiting:
            self.news = self._open.enter_context(self._reached.news())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def come(self, now_ns: int) -> tuple[Deed, ...]:
        """What is to be done for those that came since the last call; ``now_ns`` is emulated,
        since the barrier."""
        if self.news is None or not self._waiting:
            return ()
        drain(self.news, 0)
        found = [name for name in self._waiting if self._reached.request(name) is not None]
        return tuple(deed for name in found for deed in deeds_of(self._waiting.pop(name), now_ns))
