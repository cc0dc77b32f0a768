"""The sender of KV to one receiver: a pool of N connections, first come, first served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from testbed.contract.agent import AgentConfig, Peer
from testbed.contract.event import EventLog, Kind
from testbed.contract.role import Role
from testbed.errors import AgentError, ProtocolError
from testbed_agents.clock import AgentClock
from testbed_agents.pool import Lease, PoolGate
from testbed_agents.transport import frame
from testbed_agents.transport.fault import Fault, TransferError
from testbed_agents.transport.lane import Lane
from testbed_agents.transport.padding import PaddingFile
from testbed_agents.transport.pieces import Parcel
from testbed_agents.transport.transfer import OutgoingTransfer, Receipt

_REOPEN_S = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses before attempts to replace a broken connection; the last one repeats."""


class KvSender:
    """All connections from this agent to ``peer``. One event loop; ``open`` comes first."""

    def __init__(self, config: AgentConfig, peer: Peer, clock: AgentClock, log: EventLog) -> None:
        self._pool = config.pool
        self._peer = peer
        self._clock = clock
        self._log = log
        self._verify_all = config.verify == "all"
        self._filler = PaddingFile()
        self._gate = PoolGate(peer.name, config.pool, clock, log)
        self._retransmitted = [0] * config.pool.size
        self._repairs: dict[int, asyncio.Task[None]] = {}
        self._defect: BaseException | None = None
        self._closed = False
        self._lanes = [
            Lane(
                frame.Hello(config.node, peer.name, index, config.pool.size, self._verify_all),
                (config.address, config.pool.source_port + index),
                peer, config.tcp, self._filler, self._lost,
            )
            for index in range(config.pool.size)
        ]  # fmt: skip

    async def open(self) -> None:
        """Connect all lanes, after the barrier. Raises AgentError when one cannot."""
        try:
            async with asyncio.timeout(self._pool.transfer_timeout_ns / 1e9):
                async with asyncio.TaskGroup() as group:
                    for lane in self._lanes:
                        group.create_task(lane.open())
        except (TimeoutError, ExceptionGroup) as error:
            first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            raise AgentError(
                "open the connection pool", self._peer.name, str(first) or "no answer in time",
                "see that the receiver listens before the barrier",
            ) from first  # fmt: skip

    async def send(self, transfer: OutgoingTransfer) -> Receipt:
        """Acquire a connection, send, wait for the acknowledgement, release.

        Raises AcquireError when no connection was to be had and TransferError when
        the transfer was not acknowledged; both have a ``reason``. Whatever happens,
        the connection goes back to the pool or is replaced.
        """
        if self._defect is not None:
            raise AgentError(
                "replace a connection", self._peer.name, str(self._defect)
            ) from self._defect
        parcel = Parcel(transfer, self._pool.chunk_bytes, self._verify_all)
        lease = await self._gate.acquire(transfer.request)
        healthy = False
        try:
            ack = await self._transmit(transfer, parcel, lease)
            usable = self._lanes[lease.connection].usable
            healthy = usable and ack.status is not frame.Status.BROKEN
            if ack.status is not frame.Status.APPLIED:
                raise TransferError(Fault.REFUSED, f"request {transfer.request}", ack.reason)
            wire_bytes = parcel.layout.wire_bytes
            duration_ns = self._clock.now_ns() - lease.at_ns
            self._log.emit(
                Kind.TRANSFER_ACKED, wire_bytes, at_ns=lease.at_ns + duration_ns,
                req=transfer.request, peer=self._peer.name, conn=lease.connection,
                duration_ns=duration_ns,
            )  # fmt: skip
        except (TransferError, asyncio.CancelledError) as error:
            self._emit_failed(transfer.request, lease.connection, error)
            raise
        finally:
            self._emit_tcp_info(transfer.request, lease.connection)
            if healthy:
                self._gate.release(transfer.request, lease.connection)
            else:
                self._gate.retire(lease.connection, transfer.request)
                self._repair(lease.connection)
        return Receipt(transfer.request, lease.connection, wire_bytes, lease.wait_ns, duration_ns)

    async def close(self) -> None:
        """Refuse who waits, end all repairs, close all connections. Once is enough."""
        if self._closed:
            return
        self._closed = True
        self._gate.close()
        repairs = tuple(self._repairs.values())
        for repair in repairs:
            repair.cancel()
        await asyncio.gather(*repairs, return_exceptions=True)
        for lane in self._lanes:
            lane.abort()
        self._filler.close()

    async def _transmit(
        self, transfer: OutgoingTransfer, parcel: Parcel, lease: Lease
    ) -> frame.Ack:
        self._log.emit(
            Kind.TRANSFER_START, parcel.layout.wire_bytes, req=transfer.request,
            peer=self._peer.name, conn=lease.connection, blocks=len(transfer.blocks),
        )  # fmt: skip
        subject = f"request {transfer.request}"
        try:
            async with asyncio.timeout(self._pool.transfer_timeout_ns / 1e9):
                ack = await self._lanes[lease.connection].exchange(parcel.pieces())
        except TimeoutError as error:
            raise TransferError(Fault.TIMEOUT, subject, "no acknowledgement in time") from error
        if (ack.request, ack.epoch) != (transfer.request, transfer.epoch):
            raise TransferError(Fault.UNEXPECTED, subject, f"{ack} acknowledges another")
        return ack

    def _emit_failed(self, request: int, connection: int, error: BaseException) -> None:
        reason = error.cause if isinstance(error, TransferError) else "cancelled"
        self._log.emit(
            Kind.TRANSFER_FAILED, req=request, peer=self._peer.name, conn=connection, reason=reason
        )  # fmt: skip

    def _emit_tcp_info(self, request: int, connection: int) -> None:
        """``retrans`` counts the segments sent again during this transfer."""
        info = self._lanes[connection].tcp_info()
        if info is None:
            return
        retransmitted = info.total_retrans - self._retransmitted[connection]
        self._retransmitted[connection] = info.total_retrans
        self._log.emit(
            Kind.TCP_INFO, req=request, peer=self._peer.name, conn=connection,
            rtt_us=info.rtt_us, rttvar_us=info.rttvar_us, cwnd=info.cwnd,
            retrans=retransmitted, lost=info.lost,
            delivery_bps=info.delivery_bps, min_rtt_us=info.min_rtt_us,
        )  # fmt: skip

    def _lost(self, connection: int) -> None:
        # a connection that has just been given out is left to its holder, who will notice
        if not self._closed and self._gate.state.is_idle(connection):
            self._gate.retire(connection)
            self._repair(connection)

    def _repair(self, connection: int) -> None:
        self._lanes[connection].abort()
        self._retransmitted[connection] = 0
        if not self._closed:
            task = asyncio.get_running_loop().create_task(self._reopen(connection))
            self._repairs[connection] = task
            task.add_done_callback(self._repaired)

    def _repaired(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._defect = self._defect or task.exception()  # told by the next ``send``

    async def _reopen(self, connection: int) -> None:
        attempt = 0
        while True:
            await asyncio.sleep(_REOPEN_S[min(attempt, len(_REOPEN_S) - 1)])
            attempt += 1
            try:
                async with asyncio.timeout(self._pool.transfer_timeout_ns / 1e9):
                    await self._lanes[connection].open()
            except (OSError, ProtocolError):
                continue  # the receiver may be away: try again until we are closed
            del self._repairs[connection]
            self._gate.restore(connection)
            return


def senders_to(
    config: AgentConfig, clock: AgentClock, log: EventLog, *roles: Role
) -> dict[str, KvSender]:
    """A pool to every peer of these roles, by its name."""
    return {
        peer.name: KvSender(config, peer, clock, log) for peer in config.peers if peer.role in roles
    }


@asynccontextmanager
async def opened(senders: Collection[KvSender]) -> AsyncIterator[None]:
    """All pools open inside, closed behind; raises AgentError when one cannot be opened."""
    try:
        async with asyncio.TaskGroup() as opening:
            for sender in senders:
                opening.create_task(sender.open())
        yield
    finally:
        for sender in senders:
            await sender.close()
