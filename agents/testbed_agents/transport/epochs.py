"""Each (request, epoch) is accepted once, and none older than the newest seen. Pure."""

from __future__ import annotations

from collections import OrderedDict

from testbed_agents.transport.fault import Fault, FrameError


class Epochs:
    """Remembers the newest epoch of the last ``most`` requests."""

    def __init__(self, most: int = 1_000_000) -> None:
        self._most = most
        self._newest: OrderedDict[int, int] = OrderedDict()

    def admit(self, request: int, epoch: int) -> None:
        """Raises FrameError for a duplicate or a late attempt."""
        newest = self._newest.get(request)
        if newest is not None and epoch <= newest:
            reason = Fault.DUPLICATE if epoch == newest else Fault.LATE
            raise FrameError(reason, f"request {request}", f"epoch {epoch}, newest is {newest}")
        self._newest[request] = epoch
        self._newest.move_to_end(request)
        if len(self._newest) > self._most:
            self._newest.popitem(last=False)
