"""The sender of KV to one receiver: a pool of connections, by whatever discipline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from testbed.contract.agent import AgentConfig, Peer
from testbed.contract.defect import Defect
from testbed.contract.event import EventLog, Kind
from testbed.contract.role import Role
from testbed.errors import AgentError, ProtocolError
from testbed_agents.clock import AgentClock
from testbed_agents.pool import AcquireError, Claim, Lease, PoolGate, Refusal
from testbed_agents.transport import frame
from testbed_agents.transport.bundle import Bundle
from testbed_agents.transport.connection import require_port_choice
from testbed_agents.transport.fault import Fault, TransferError
from testbed_agents.transport.pieces import Parcel, parcels_of
from testbed_agents.transport.reopening import patience_s, pause_s
from testbed_agents.transport.stall import SILENCE_MS
from testbed_agents.transport.transfer import OutgoingTransfer, Receipt

_LEG_DOWN = (Fault.STALLED, Refusal.UNANSWERED)
LEGS_TRIED = 4
"""Most connections that a transfer is tried over while their legs are down."""


class KvSender:
    """All connections from this agent to ``peer``. One event loop; ``open`` comes first."""

    def __init__(self, config: AgentConfig, peer: Peer, clock: AgentClock, log: EventLog) -> None:
        self._config = config
        self._pool = config.pool
        self._peer = peer
        self._clock = clock
        self._log = log
        self._verify_all = config.verify == "all"
        self._failover = config.guards(Defect.LEG_FAILOVER)
        self.held_up: Callable[[int], None] = _nobody
        """Told of each request whose transfer stalled."""
        self._lanes, self._gate = self._anew()
        self._repairs: dict[int, asyncio.Task[None]] = {}
        self._defect: BaseException | None = None
        self._closed = False

    async def open(self) -> None:
        """Connect what stands, after the barrier. Raises AgentError when a lane cannot."""
        if self._gate.state.standing:
            await self._lanes.open_all(self._gate.state.standing)
        elif self._pool.closes:
            require_port_choice()

    def _anew(self) -> tuple[Bundle, PoolGate]:
        lanes = Bundle(self._config, self._peer, self._clock, self._lost)
        return lanes, PoolGate(self._peer.name, self._pool, self._clock, self._log, lanes)

    def reopen(self) -> None:
        """The receiver is back after ``close``: connect anew, each connection by itself.

        Transfers wait for the first of them. An open pool stays as it is.
        """
        if not self._closed or not self._config.guards(Defect.PAIR_RECOVERY):
            return
        self._lanes, self._gate = self._anew()
        self._repairs.clear()
        self._closed = False
        self._lanes.prepare(self._gate.state.standing)
        for connection in range(self._gate.state.standing):
            self._gate.retire(connection)
            self._repair(connection)

    async def send(self, transfer: OutgoingTransfer) -> Receipt:
        """Acquire a connection, send, wait for the acknowledgement, release.

        Where the leg of its connection is down it goes over another one, as a later epoch.

        Raises AcquireError when no connection was to be had and TransferError when
        the transfer was not acknowledged; both have a ``reason``. Whatever happens,
        the connection goes back to the pool or is replaced.
        """
        last = transfer.epoch + LEGS_TRIED - 1
        while True:
            try:
                return await self._send(transfer, transfer.epoch == last or not self._failover)
            except (TransferError, AcquireError) as error:
                if error.reason not in _LEG_DOWN or transfer.epoch == last:
                    raise
            self.held_up(transfer.request)
            self._renew_silent()
            transfer = replace(transfer, epoch=transfer.epoch + 1)

    async def _send(self, transfer: OutgoingTransfer, patient: bool) -> Receipt:
        if self._defect is not None:
            raise AgentError(
                "replace a connection", self._peer.name, str(self._defect)
            ) from self._defect
        parcel = Parcel(transfer, self._pool.chunk_bytes, self._verify_all)
        claim = Claim(parcel.layout.wire_bytes, transfer.due_ns)
        lease = await self._gate.acquire(transfer.request, claim, patient)
        others = await self._join(transfer, parcel, lease)
        parcels: tuple[Parcel, ...] = (parcel,)
        if others:
            count = 1 + len(others)
            parcels = parcels_of(transfer, self._pool.chunk_bytes, self._verify_all, count)
        parts = dict(zip((lease.connection, *others), parcels, strict=True))
        sound: set[int] = set()
        stalled = False
        try:
            ack = await self._transmit(transfer, parts, lease, sound)
            if ack.status is not frame.Status.APPLIED:
                raise TransferError(Fault.REFUSED, f"request {transfer.request}", ack.reason)
            wire_bytes = _wire_bytes(parts)
            duration_ns = self._clock.now_ns() - lease.at_ns
            self._log.emit(
                Kind.TRANSFER_ACKED, wire_bytes, at_ns=lease.at_ns + duration_ns,
                req=transfer.request, peer=self._peer.name, conn=lease.connection,
                duration_ns=duration_ns,
            )  # fmt: skip
        except (TransferError, asyncio.CancelledError) as error:
            self._emit_failed(transfer.request, lease.connection, error)
            stalled = isinstance(error, TransferError) and error.reason is Fault.STALLED
            raise
        finally:
            for connection in parts:
                self._emit_tcp_info(transfer.request, connection)
            for connection in others:
                self._gate.leave(transfer.request, connection, connection in sound)
                if connection not in sound and self._gate.state.standing:
                    self._repair(connection)
            healthy = lease.connection in sound
            self._give_back(transfer.request, lease.connection, healthy, stalled)
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
        self._lanes.close_all()

    async def _join(
        self, transfer: OutgoingTransfer, parcel: Parcel, lease: Lease
    ) -> tuple[int, ...]:
        """Further connections for a transfer in parts, each of which is a chunk at least."""
        least = min(len(parcel.layout.chunks), len(transfer.blocks))
        most = min(self._pool.stripes, least) - 1
        if most < 1:
            return ()
        try:
            return await self._gate.join(transfer.request, most)
        except BaseException:
            usable = self._lanes[lease.connection].usable
            self._give_back(transfer.request, lease.connection, usable)
            raise

    def _give_back(
        self, request: int, connection: int, healthy: bool, stalled: bool = False
    ) -> None:
        if healthy:
            self._gate.release(request, connection)
        else:
            if self._gate.retire(connection, request, last=stalled):
                self._repair(connection)

    async def _transmit(
        self,
        transfer: OutgoingTransfer,
        parts: Mapping[int, Parcel],
        lease: Lease,
        sound: set[int],
    ) -> frame.Ack:
        """Write all parts, each on its connection; ``sound`` gathers those that stay of use."""
        lead, *others = parts
        more: dict[str, int] = {"parts": len(parts)} if others else {}
        self._log.emit(
            Kind.TRANSFER_START, _wire_bytes(parts), req=transfer.request,
            peer=self._peer.name, conn=lead, blocks=len(transfer.blocks), **more,
        )  # fmt: skip
        try:
            async with asyncio.timeout(self._clock.seconds(self._pool.transfer_timeout_ns)):
                if others:
                    return await self._exchange_all(transfer, parts, sound)
                gaps = self._pool.preempt and not lease.lent
                return await self._exchange(transfer, lead, parts[lead], sound, gaps)
        except TimeoutError as error:
            raise TransferError(
                Fault.TIMEOUT, f"request {transfer.request}", "no acknowledgement in time"
            ) from error

    async def _exchange(
        self,
        transfer: OutgoingTransfer,
        connection: int,
        parcel: Parcel,
        sound: set[int],
        gaps: bool = False,
    ) -> frame.Ack:
        async def gap(left_bytes: int) -> None:
            claim = Claim(left_bytes, transfer.due_ns)
            await self._gate.lend(transfer.request, connection, claim)

        ack = await self._lanes.exchange(connection, parcel.pieces(gaps), gap)
        if (ack.request, ack.epoch) != (transfer.request, transfer.epoch):
            raise TransferError(
                Fault.UNEXPECTED, f"request {transfer.request}", f"{ack} acknowledges another"
            )
        if self._lanes[connection].usable and ack.status is not frame.Status.BROKEN:
            sound.add(connection)
        return ack

    async def _exchange_all(
        self, transfer: OutgoingTransfer, parts: Mapping[int, Parcel], sound: set[int]
    ) -> frame.Ack:
        """One part that fails ends the others: their connections are reset."""

        async def part(connection: int, parcel: Parcel) -> frame.Ack:
            ack = await self._exchange(transfer, connection, parcel, sound)
            if ack.status is frame.Status.BROKEN:
                raise TransferError(Fault.REFUSED, f"request {transfer.request}", ack.reason)
            return ack

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(part(*each)) for each in parts.items()]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        acks = [task.result() for task in tasks]
        return next((ack for ack in acks if ack.status is not frame.Status.APPLIED), acks[0])

    def _emit_failed(self, request: int, connection: int, error: BaseException) -> None:
        reason = error.cause if isinstance(error, TransferError) else "cancelled"
        self._log.emit(
            Kind.TRANSFER_FAILED, req=request, peer=self._peer.name, conn=connection, reason=reason
        )  # fmt: skip

    def _emit_tcp_info(self, request: int, connection: int) -> None:
        """``retrans`` counts the segments sent again during this transfer."""
        seen = self._lanes.tcp_info(connection)
        if seen is None:
            return
        info, retransmitted = seen
        self._log.emit(
            Kind.TCP_INFO, req=request, peer=self._peer.name, conn=connection,
            rtt_us=info.rtt_us, rttvar_us=info.rttvar_us, cwnd=info.cwnd,
            retrans=retransmitted, lost=info.lost,
            delivery_bps=info.delivery_bps, min_rtt_us=info.min_rtt_us,
        )  # fmt: skip

    def _renew_silent(self) -> None:
        """A leg is down: idle connections that may be on it are opened anew.

        One whose leg is up is back after a handshake. The others stay away until theirs is.
        """
        state = self._gate.state
        idle = [one for one in range(self._pool.numbers) if state.is_idle(one)]
        for connection in self._lanes.unheard(idle, SILENCE_MS):
            self._lost(connection)

    def _lost(self, connection: int) -> None:
        # a connection that has just been given out is left to its holder, who will notice
        idle = not self._closed and self._gate.state.is_idle(connection)
        if idle and self._gate.retire(connection, last=True):
            self._repair(connection)

    def _repair(self, connection: int) -> None:
        self._lanes.abort(connection)
        if not self._config.guards(Defect.PAIR_RECOVERY):
            self._gate.close()  # the pair is held for failed, for good
            return
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
            await asyncio.sleep(pause_s(attempt) * self._clock.slow)
            within_s = patience_s(attempt, self._pool.transfer_timeout_ns / 1e9)
            attempt += 1
            try:
                async with asyncio.timeout(within_s * self._clock.slow):
                    await self._lanes[connection].open()
            except (OSError, ProtocolError):
                continue  # the receiver may be away: try again until we are closed
            del self._repairs[connection]
            self._gate.restore(connection)
            return


def _nobody(request: int) -> None:
    pass


def _wire_bytes(parts: Mapping[int, Parcel]) -> int:
    return sum(parcel.layout.wire_bytes for parcel in parts.values())


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
