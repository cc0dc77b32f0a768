"""Each (request, epoch) is accepted once, and none older than the newest seen. Pure."""

from __future__ import annotations

from collections import OrderedDict

from testbed_agents.transport.fault import Fault, FrameError


class Epochs:
    """Remembers the newest epoch of the last ``most`` requests.

    An epoch in several parts is accepted once a part, until it is fenced off: then no part that
    was late is written any more.
    """

    def __init__(self, most: int = 1_000_000) -> None:
        self._most = most
        self._newest: OrderedDict[int, int] = OrderedDict()
        self._awaited: dict[int, set[int]] = {}  # parts of the newest epoch that may still come

    def admit(self, request: int, epoch: int, part: int = 0, parts: int = 1) -> None:
        """Raises FrameError for a duplicate or a late attempt, or a late part of one."""
        newest = self._newest.get(request)
        if newest is not None and epoch <= newest:
            awaited = self._awaited.get(request)
            if epoch == newest and awaited is not None and part in awaited:
                awaited.remove(part)
                if not awaited:
                    del self._awaited[request]
                return
            reason = Fault.DUPLICATE if epoch == newest else Fault.LATE
            raise FrameError(reason, f"request {request}", f"epoch {epoch}, newest is {newest}")
        self._newest[request] = epoch
        self._newest.move_to_end(request)
        self._awaited.pop(request, None)
        if parts > 1:
            self._awaited[request] = set(range(parts)) - {part}
        if len(self._newest) > self._most:
            oldest, _ = self._newest.popitem(last=False)
            self._awaited.pop(oldest, None)

    def fence(self, request: int, epoch: int) -> None:
        """No further part of this epoch is accepted: the transfer has failed."""
        if self._newest.get(request) == epoch:
            self._awaited.pop(request, None)
