"""The decode loop of one instance: a batch is planned, takes its time, and runs on the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from testbed.contract.attempt import request_of
from testbed_agents.handoff.action import Feed
from testbed_agents.hardware import decode_ns
from testbed_agents.model.engine import Engine
from testbed_agents.model.protocol import Choice, Step
from testbed_agents.runtime import Runtime
from testbed_agents.serving.device import DeviceMemory
from testbed_agents.serving.held import Held


@dataclass(frozen=True, slots=True)
class Turn:
    """What one request is fed in a step."""

    job: int
    held: Held
    feed: Feed


class Steps:
    """See the module.

    Args:
        plan: who is fed what in the next step; nobody where there is nothing to do.
        stepped: called with the same turns and the token that was chosen after each.
    """

    def __init__(
        self, runtime: Runtime, model: Engine, memory: DeviceMemory,
        plan: Callable[[], Sequence[Turn]],
        stepped: Callable[[Sequence[Turn], Sequence[int]], None],
    ) -> None:  # fmt: skip
        self._runtime = runtime
        self._model = model
        self._memory = memory
        self._plan = plan
        self._stepped = stepped
        self._work = asyncio.Event()

    def wake(self) -> None:
        """There may be something to do."""
        self._work.set()

    async def serve(self) -> None:
        """Step after step, until cancelled."""
        hardware = self._runtime.config.hardware
        while True:
            turns = self._plan()
            if not turns:
                self._work.clear()
                await self._work.wait()
                continue
            context = sum(one.held.prompt.input_tokens + one.feed.position for one in turns)
            extra = sum(len(one.feed.tokens) - 1 for one in turns)
            choices = await self._runtime.clock.during(
                decode_ns(hardware, len(turns), context, extra), partial(self._decode, turns)
            )
            self._memory.complete()
            self._runtime.progress()
            self._stepped(turns, [choice.token for choice in choices])

    def _decode(self, turns: Sequence[Turn]) -> Sequence[Choice]:
        return self._model.decode(
            [Step(one.held.rows, one.feed.tokens, request_of(one.job)) for one in turns]
        )
