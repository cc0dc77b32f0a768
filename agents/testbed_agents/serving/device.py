"""Device memory of a decode instance on the run's clock: room, copy, steps, preemption.

::

    submit ─▶ waits for room, oldest first ─▶ copied in ─▶ ``begin`` ─▶ fed by ``plan``
                     ▲                                                    │
                     └──────────── ``drop``: preempted, newest first ─────┘

What has arrived on the host stays there as long as its sequence: after a preemption it is
copied in again, and what was computed behind it is computed again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from testbed.contract.event import Kind
from testbed.contract.serving import DeviceLimits
from testbed.errors import AgentError
from testbed_agents.batching import Batch, Sequence, Step, limits_of
from testbed_agents.hardware import copy_ns
from testbed_agents.runtime import Runtime
from testbed_agents.serving.held import Held


@dataclass(slots=True)
class _Place:
    """A request here: bytes to copy in, and whether it was admitted before."""

    copied: int
    again: bool = False


class DeviceMemory:
    """See the module.

    Args:
        kv_bytes: size of the memory for KV; 0 takes the hardware profile's.
        begin: called for a request whose KV is on the device, also after a preemption.
        drop: called for a request that loses all that was computed for it.
    """

    def __init__(
        self, runtime: Runtime, chosen: DeviceLimits, kv_bytes: int,
        begin: Callable[[int], None], drop: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._runtime = runtime
        config = runtime.config
        self._limits = limits_of(config.hardware, config.shape, chosen, kv_bytes)
        self._begin = begin
        self._drop = drop
        self._batch = Batch(self._limits)
        self._places: dict[int, _Place] = {}
        self._changed = asyncio.Event()

    def fits(self, input_tokens: int, output_tokens: int) -> bool:
        """Whether a sequence of so many tokens could ever be held."""
        return self._batch.fits(input_tokens + output_tokens)

    def submit(self, req: int, held: Held, output_tokens: int) -> None:
        """Let a request wait for room; what came from P is copied in from the host.

        Raises:
            ValueError: it is here already, or can never be held.
        """
        kept = held.prompt.input_tokens
        self._batch.submit(Sequence(req, kept, kept + output_tokens))
        tokens = held.missing * self._runtime.config.shape.block_tokens
        copied = self._limits.size(tokens) if tokens else 0
        self._places[req] = _Place(copied)
        self._changed.set()

    def leave(self, req: int) -> None:
        """Give everything of a request back, from wherever it is."""
        self._batch.remove(req)
        self._places.pop(req, None)
        self._changed.set()

    def close(self) -> None:
        """The end: everybody who was here has given everything back.

        Raises:
            AgentError: somebody has not: it leaked.
        """
        left = (*self._batch.held, *self._batch.waiting)
        if left:
            raise AgentError(
                "close the device memory", f"{self._batch.kv_bytes} bytes of KV",
                f"{len(left)} requests still have a place, the first is {left[0]}",
                "this is a defect of the agent: report it with the run folder",
            )  # fmt: skip

    def grow(self, req: int, tokens: int) -> bool:
        """KV of ``tokens`` further tokens has come from elsewhere; False without room for it."""
        return self._batch.grow(req, tokens)

    def plan(self, wanted: Mapping[int, int]) -> Step:
        """The next step, where ``wanted`` has the ids that each request could be fed."""
        step = self._batch.plan(wanted)
        for one in step.preempted:
            self._drop(one.identity)
            self._tell(Kind.SEQUENCE_PREEMPTED, one.identity, tokens=one.tokens)
        if step.preempted:
            self._changed.set()
        return step

    def complete(self) -> None:
        """The planned step has run."""
        self._batch.complete()

    async def serve(self) -> None:
        """Admits and copies in, one sequence at a time, until cancelled."""
        while True:
            req = self._batch.admit()
            if req is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            place = self._places[req]
            self._tell(Kind.SEQUENCE_ADMITTED, req, again=place.again)
            place.again = True
            if place.copied:
                await self._runtime.clock.spend(
                    copy_ns(self._runtime.config.hardware, place.copied)
                )
            if self._batch.loaded(req):  # it has neither left nor lost its room meanwhile
                self._begin(req)

    def _tell(self, kind: Kind, req: int, **fields: int) -> None:
        batch = self._batch
        self._runtime.events.emit(
            kind, batch.kv_bytes, req=req, held=len(batch.held), waiting=len(batch.waiting),
            **fields,
        )  # fmt: skip
