"""Device memory of a decode instance on the run's clock: room first, then the copy.

What has arrived on the host waits, oldest first, until its whole sequence fits; then its
bytes are copied, one sequence at a time, and it may decode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from testbed.contract.agent import Shape
from testbed_agents.batching import KvMemory
from testbed_agents.hardware import copy_ns
from testbed_agents.runtime import Runtime


class DeviceMemory:
    """See the module. ``begin`` is called for a request whose KV is on the device."""

    def __init__(self, runtime: Runtime, begin: Callable[[int], None]) -> None:
        self._runtime = runtime
        self._begin = begin
        self._memory = KvMemory(runtime.config.hardware.kv_memory_bytes)
        self._copied: dict[int, int] = {}
        self._changed = asyncio.Event()

    def fits(self, size: int) -> bool:
        """Whether a sequence of ``size`` bytes could ever be held."""
        return self._memory.fits(size)

    def submit(self, req: int, size: int, copied: int) -> None:
        """Let a request wait for ``size`` bytes, of which ``copied`` come from the host."""
        self._memory.submit(req, size)
        self._copied[req] = copied
        self._changed.set()

    def leave(self, req: int) -> None:
        """Give everything of a request back, from wherever it is."""
        self._memory.leave(req)
        self._copied.pop(req, None)
        self._changed.set()

    async def serve(self) -> None:
        """Admits until cancelled."""
        while True:
            req = self._memory.admit()
            if req is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            copied = self._copied[req]
            if copied:
                await self._runtime.clock.spend(copy_ns(self._runtime.config.hardware, copied))
            if self._copied.pop(req, None) is not None:  # it has not left meanwhile
                self._begin(req)


def sequence_bytes(shape: Shape, input_tokens: int, output_tokens: int) -> int:
    """Device memory of a whole sequence; blocks that a cache shares count in full."""
    return shape.fixed_bytes + (input_tokens + output_tokens) * shape.bytes_per_token
