"""All lanes from one sender to one peer, by number: opened, asked, closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from testbed.contract.agent import AgentConfig, Peer
from testbed.contract.defect import Defect
from testbed.errors import AgentError, ProtocolError
from testbed_agents.clock import AgentClock
from testbed_agents.pool import OpenError, Refusal
from testbed_agents.transport import frame
from testbed_agents.transport.lane import Lane
from testbed_agents.transport.opening import not_opened
from testbed_agents.transport.padding import PaddingFile
from testbed_agents.transport.pieces import Piece
from testbed_agents.transport.stall import StallWatch
from testbed_agents.transport.tcp_info import TcpInfo


class Bundle:
    """Connection i has source port ``source_port + i``.

    ``lost`` is called with the number of an idle connection that is found broken.
    """

    def __init__(
        self, config: AgentConfig, peer: Peer, clock: AgentClock, lost: Callable[[int], None]
    ) -> None:
        self._config = config
        self._peer = peer
        self._clock = clock
        self._lost = lost
        self._filler = PaddingFile()
        self._failover = config.guards(Defect.LEG_FAILOVER)
        self._lanes: dict[int, Lane] = {}
        self._retransmitted: dict[int, int] = {}

    def __getitem__(self, connection: int) -> Lane:
        """Raises KeyError where it was never opened, or is closed."""
        return self._lanes[connection]

    def prepare(self, count: int) -> None:
        """Make the first ``count`` lanes, to be opened one by one."""
        self._lanes = {connection: self._lane(connection) for connection in range(count)}

    async def open_all(self, count: int) -> None:
        """Connect the first ``count`` lanes, which then stand. Raises AgentError."""
        self.prepare(count)
        patience = self._clock.seconds(self._config.pool.transfer_timeout_ns)
        try:
            async with asyncio.timeout(patience), asyncio.TaskGroup() as group:
                for lane in self._lanes.values():
                    group.create_task(lane.open())
        except (TimeoutError, ExceptionGroup) as error:
            first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            raise AgentError(
                "open the connection pool", self._peer.name, str(first) or "no answer in time",
                "see that the receiver listens before the barrier",
            ) from first  # fmt: skip

    async def exchange(
        self,
        connection: int,
        pieces: Iterable[Piece],
        gap: Callable[[int], Awaitable[None]] | None = None,
    ) -> frame.Ack:
        """As ``Lane.exchange``, and an end of it where the leg is down. Raises TransferError."""
        lane, slow = self._lanes[connection], self._clock.slow

        def look() -> TcpInfo | None:
            info = lane.tcp_info()
            return None if info is None else info.emulated(slow)

        watch = StallWatch(look, slow, lane.stalled)
        if self._failover:
            watch.start()
        try:
            return await lane.exchange(pieces, gap)
        finally:
            watch.end()

    def unheard(self, connections: Iterable[int], silent_ms: int) -> tuple[int, ...]:
        """Those of ``connections`` whose peer has said nothing for so long, in their order."""
        found: list[int] = []
        for connection in connections:
            lane = self._lanes.get(connection)
            info = None if lane is None else lane.tcp_info()
            if info is not None and info.emulated(self._clock.slow).silent_ms >= silent_ms:
                found.append(connection)
        return tuple(found)

    async def open(self, connection: int) -> None:
        """Connect a lane that was not there. Raises OpenError, or OSError for a defect."""
        lane = self._lane(connection)
        try:
            await lane.open()
        except (OSError, ProtocolError) as error:
            refusal = not_opened(self._peer.name, error)
            if refusal is None or not self._spared(refusal):
                raise
            raise refusal from error
        self._lanes[connection] = lane

    def drop(self, connection: int, clean: bool) -> bool:
        """See ``Lane``; False where it is not open."""
        lane = self._lanes.get(connection)
        return lane is not None and lane.drop(clean)

    def close(self, connection: int, in_order: bool) -> None:
        """End a lane and forget it: in order while it is idle, else by a reset."""
        lane = self._lanes.pop(connection, None)
        self._retransmitted.pop(connection, None)
        if lane is not None:
            if in_order:
                lane.close()
            else:
                lane.abort()

    def abort(self, connection: int) -> None:
        """Reset a standing lane, which is going to be opened anew."""
        self._lanes[connection].abort()
        self._retransmitted.pop(connection, None)

    def close_all(self) -> None:
        """Reset all that are open. Once is enough."""
        for lane in self._lanes.values():
            lane.abort()
        self._filler.close()

    def tcp_info(self, connection: int) -> tuple[TcpInfo, int] | None:
        """The kernel's view in emulated time, and segments sent again since the last call.

        None once the connection is gone.
        """
        lane = self._lanes.get(connection)
        info = None if lane is None else lane.tcp_info()
        if info is None:
            return None
        again = info.total_retrans - self._retransmitted.get(connection, 0)
        self._retransmitted[connection] = info.total_retrans
        return info.emulated(self._clock.slow), again

    def _spared(self, refusal: OpenError) -> bool:
        guarded = self._config.guards(Defect.DESCRIPTOR_RESERVE)
        return guarded or refusal.reason is not Refusal.NO_DESCRIPTOR

    def _lane(self, connection: int) -> Lane:
        config = self._config
        hello = frame.Hello(
            config.node, self._peer.name, connection, config.pool.numbers,
            config.verify == "all", config.pool.preempt,
        )  # fmt: skip
        source = (config.address, config.pool.source_port + connection)
        late = config.pool.closes
        stall_ns = config.guard.stall_timeout_ns if config.guards(Defect.LANE_BYTES) else 0
        return Lane(
            hello, source, self._peer, config.tcp, self._filler, self._lost, late,
            self._clock.seconds(stall_ns),
        )  # fmt: skip
