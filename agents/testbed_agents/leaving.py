"""Users that go: which requests of a client are left while their answer is under way, and when."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TypeAlias

from testbed.contract.ailment import Leave
from testbed_agents.clock import AgentClock

Hit: TypeAlias = Callable[[int], None]


class Leaving:
    """Of one client, which tells it of its requests. One fault at a time.

    Attributes:
        leave: ends a request by its number; ``clean`` tells others so. Returns whether it was
            still open. Set by the client.
    """

    def __init__(self, clock: AgentClock) -> None:
        self._clock = clock
        self._fault: Leave | None = None
        self._hit: Hit = _nobody
        self._going: dict[int, tuple[Leave, Hit]] = {}
        """Requests that were sent under a fault and will be left, which outlives it."""
        self.leave: Callable[[int, bool], bool] = _never

    def begin(self, fault: Leave, hit: Hit) -> None:
        """Requests that are sent from now on may be left; ``hit`` is told of each that is."""
        self._fault, self._hit = fault, hit

    def end(self) -> None:
        """Requests that are sent from now on are not."""
        self._fault = None

    def sent(self, request: int) -> None:
        """It has just been sent."""
        fault = self._fault
        if fault is None or not leaves(fault, request):
            return
        if fault.after_ns is None:
            self._going[request] = fault, self._hit
        else:
            loop = asyncio.get_running_loop()
            pause_s = self._clock.seconds(fault.after_ns)
            loop.call_later(pause_s, self.go, request, fault, self._hit)

    def shown(self, request: int, tokens: int) -> None:
        """The user has seen so many tokens of it."""
        going = self._going.get(request)
        if going is not None and going[0].tokens is not None and tokens >= going[0].tokens:
            del self._going[request]
            self.go(request, *going)

    def go(self, request: int, fault: Leave, hit: Hit) -> None:
        """Its user goes now, unless it has ended."""
        if self.leave(request, fault.clean):
            hit(request)


def leaves(fault: Leave, request: int) -> bool:
    """Whether the user of this request goes: by its number, or by a chance of its own. Pure."""
    if fault.requests:
        return request in fault.requests
    return random.Random(f"{fault.seed}/{request}").random() < fault.share


def _nobody(_: int) -> None:
    pass


def _never(_: int, __: bool) -> bool:
    return False
