"""The sender of KV to one receiver: a pool of connections, by whatever discipline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
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
from testbed_agents.transport.affliction import Affliction
from testbed_agents.transport.bundle import Bundle
from testbed_agents.transport.connection import require_port_choice
from testbed_agents.transport.exchange import Exchange, refusal
from testbed_agents.transport.fault import Fault, TransferError
from testbed_agents.transport.pieces import Parcel, parcels_of
from testbed_agents.transport.progress import Progress
from testbed_agents.transport.reopening import patience_s, pause_s
from testbed_agents.transport.retry import Retries
from testbed_agents.transport.stall import SILENCE_MS
from testbed_agents.transport.transfer import OutgoingTransfer, Receipt
from testbed_agents.transport.withheld import Withheld

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
        self._most_bytes = config.guard.queue_bytes if config.guards(Defect.LANE_BYTES) else 0
        self._bytes = 0
        """Of all transfers that wait for a connection or are on one, where they are bounded."""
        self._exchange = Exchange(config, clock, self._lanes, self._gate)
        self._retries = Retries(
            config.guard, config.seed, config.guards(Defect.RETRY_BUDGET),
            config.guards(Defect.RESEND_IN_PARTS),
        )  # fmt: skip
        self._failed = False
        self._repairs: dict[int, asyncio.Task[None]] = {}
        self.withheld = Withheld(self._gate, self._lanes, self._repair)
        self.affliction = Affliction()
        self.progress = Progress(clock)
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
        sizes = self._config.guard.queue_bytes > 0
        gate = PoolGate(self._peer.name, self._pool, self._clock, self._log, lanes, sizes)
        return lanes, gate

    def reopen(self) -> None:
        """The receiver is back after ``close``: connect anew, each connection by itself.

        Transfers wait for the first of them. An open pool stays as it is.
        """
        if not self._closed or not self._config.guards(Defect.PAIR_RECOVERY):
            return
        self._lanes, self._gate = self._anew()
        self._exchange = Exchange(self._config, self._clock, self._lanes, self._gate)
        self.withheld = self.withheld.moved(self._gate, self._lanes)
        self._repairs.clear()
        self._closed = False
        self._lanes.prepare(self._gate.state.standing)
        for connection in range(self._gate.state.standing):
            self._gate.retire(connection)
            self._repair(connection)

    async def send(self, transfer: OutgoingTransfer) -> Receipt:
        """Acquire a connection, send, wait for the acknowledgement, release.

        Where the leg of its connection is down it goes over another one. What failed for another
        reason that may pass is tried again, as often as the guard allows. Each attempt has the
        next epoch.

        Raises AcquireError when no connection was to be had and TransferError when the transfer
        was not acknowledged; both have a ``reason``. Whatever happens, the connection goes back
        to the pool or is replaced.
        """
        attempt, turns, legs = 0, 1, 1
        while True:
            patient = legs == LEGS_TRIED or not self._failover
            try:
                return await self._attempt(transfer, turns, attempt + legs > 1, patient)
            except AcquireError as error:
                leg_down = error.reason is Refusal.UNANSWERED and legs < LEGS_TRIED
                if not leg_down:
                    raise
            except TransferError as error:
                leg_down = error.reason is Fault.STALLED and legs < LEGS_TRIED
                if not leg_down and (self._closed or not self._retries.again(attempt, error)):
                    self._failed = self._failed or self._retries.for_good(error)
                    raise
                turns = self._retries.turns(turns, error.reason, len(transfer.blocks))
            if leg_down:
                legs += 1
                self.held_up(transfer.request)
                self._renew_silent()
            else:
                await self._clock.spend(self._retries.pause_ns(transfer.request, attempt))
                attempt += 1
            transfer = replace(transfer, epoch=transfer.epoch + 1)

    async def _attempt(
        self, transfer: OutgoingTransfer, turns: int, again: bool, patient: bool
    ) -> Receipt:
        if self._defect is not None:
            raise AgentError(
                "replace a connection", self._peer.name, str(self._defect)
            ) from self._defect
        if self._failed:
            raise self._gate.refuse(transfer.request, Refusal.PEER_FAILED)
        parcel = Parcel(transfer, self._pool.chunk_bytes, self._verify_all)
        size = parcel.layout.wire_bytes
        if self._bytes and self._most_bytes and self._bytes + size > self._most_bytes:
            raise self._gate.refuse(transfer.request, Refusal.QUEUE_FULL)
        self._bytes += size
        try:
            claim = Claim(size, transfer.due_ns)
            lease = await self._gate.acquire(transfer.request, claim, patient)
            others = await self._join(transfer, parcel, lease) if turns == 1 else ()
            return await self._send_over(transfer, parcel, lease, others, turns, again)
        finally:
            self._bytes -= size

    async def _send_over(
        self,
        transfer: OutgoingTransfer,
        parcel: Parcel,
        lease: Lease,
        others: tuple[int, ...],
        turns: int,
        again: bool,
    ) -> Receipt:
        """Over the leased connection and those that joined, or in ``turns`` over the one."""
        parcels: tuple[Parcel, ...] = (parcel,)
        if others or turns > 1:
            parcels = parcels_of(
                transfer, self._pool.chunk_bytes, self._verify_all, max(turns, 1 + len(others)),
                in_turn=turns > 1,
            )  # fmt: skip
        wire_bytes = sum(one.layout.wire_bytes for one in parcels)
        parts = dict(zip((lease.connection, *others), parcels, strict=turns == 1))
        self.affliction.spoil(transfer, parcels)
        passage = self.progress.passage(transfer.request, wire_bytes)
        sound: set[int] = set()
        stalled = False
        told = {"parts": len(parts), "turns": turns}
        more = {name: count for name, count in told.items() if count > 1}
        if again:
            more["epoch"] = transfer.epoch
        self._log.emit(
            Kind.TRANSFER_START, wire_bytes, req=transfer.request, peer=self._peer.name,
            conn=lease.connection, blocks=len(transfer.blocks),
            **more,
        )  # fmt: skip
        try:
            passage.begin([self._lanes[connection] for connection in parts])
            if turns > 1:
                ack = await self._exchange.in_turn(transfer, parcels, lease, sound)
            else:
                ack = await self._exchange.over(transfer, parts, lease, sound)
            if ack.status is not frame.Status.APPLIED:
                raise refusal(transfer, ack)
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
            passage.end(bool(sound))
            for connection in parts:
                self._emit_tcp_info(transfer.request, connection)
            for connection in others:
                self._gate.leave(transfer.request, connection, connection in sound)
                if connection not in sound and self._gate.state.standing:
                    self._repair(connection)
            self.withheld.settle()
            healthy = lease.connection in sound
            self._give_back(transfer.request, lease.connection, healthy, stalled)
        return Receipt(transfer.request, lease.connection, wire_bytes, lease.wait_ns, duration_ns)

    def drop(self, connection: int, clean: bool) -> bool:
        """Lose one connection, whatever it carries; False where it is not open."""
        return self._lanes.drop(connection, clean)

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
        if self.affliction.keeps(request):
            return
        if healthy:
            if not self.withheld.takes_loan(request, connection):
                self._gate.release(request, connection)
        else:
            if self._gate.retire(connection, request, last=stalled):
                self._repair(connection)

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
        if not self._closed and not self.withheld.takes_broken(connection):
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
            if not self.withheld.takes_broken(connection):
                self._gate.restore(connection)
            return


def _nobody(request: int) -> None:
    pass


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
