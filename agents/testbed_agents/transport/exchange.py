"""What happens on the connections that a transfer has got: its parts are written, and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from testbed.contract.agent import AgentConfig
from testbed.contract.defect import Defect
from testbed_agents.clock import AgentClock
from testbed_agents.pool import Claim, Lease, PoolGate
from testbed_agents.transport import frame
from testbed_agents.transport.bundle import Bundle
from testbed_agents.transport.fault import Fault, TransferError
from testbed_agents.transport.pieces import Parcel
from testbed_agents.transport.transfer import OutgoingTransfer

_WHOLE = (frame.Status.APPLIED, frame.Status.REFUSED)
"""Answers to a transfer that was read to its end: its connection is of use for another."""


class Exchange:
    """Of one sender with its peer. Every call raises TransferError where no answer came."""

    def __init__(
        self, config: AgentConfig, clock: AgentClock, lanes: Bundle, gate: PoolGate
    ) -> None:
        self._preempt = config.pool.preempt
        self._lanes = lanes
        self._gate = gate
        self._patience_s = (
            clock.seconds(config.pool.transfer_timeout_ns)
            if config.guards(Defect.TRANSFER_DEADLINE)
            else None
        )

    async def over(
        self,
        transfer: OutgoingTransfer,
        parts: Mapping[int, Parcel],
        lease: Lease,
        sound: set[int],
    ) -> frame.Ack:
        """Write all parts, each on its connection; ``sound`` gathers those that stay of use."""
        lead, *others = parts
        try:
            async with asyncio.timeout(self._patience_s):
                if others:
                    return await self._all(transfer, parts, sound)
                gaps = self._preempt and not lease.lent
                return await self._one(transfer, lead, parts[lead], sound, gaps)
        except TimeoutError as error:
            raise TransferError(
                Fault.TIMEOUT, f"request {transfer.request}", "no acknowledgement in time"
            ) from error

    async def in_turn(
        self,
        transfer: OutgoingTransfer,
        parcels: tuple[Parcel, ...],
        lease: Lease,
        sound: set[int],
    ) -> frame.Ack:
        """Parts one by one, each with the time of a transfer."""
        ack = frame.Ack(frame.Status.APPLIED, transfer.request, transfer.epoch)
        for parcel in parcels:
            sound.discard(lease.connection)
            ack = await self.over(transfer, {lease.connection: parcel}, lease, sound)
            if ack.status is not frame.Status.APPLIED:
                break
        return ack

    async def _one(
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
        if self._lanes[connection].usable and ack.status in _WHOLE:
            sound.add(connection)
        return ack

    async def _all(
        self, transfer: OutgoingTransfer, parts: Mapping[int, Parcel], sound: set[int]
    ) -> frame.Ack:
        """One part that fails ends the others: their connections are reset."""

        async def part(connection: int, parcel: Parcel) -> frame.Ack:
            ack = await self._one(transfer, connection, parcel, sound)
            if ack.status not in _WHOLE:
                raise refusal(transfer, ack)
            return ack

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(part(*each)) for each in parts.items()]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        acks = [task.result() for task in tasks]
        return next((ack for ack in acks if ack.status is not frame.Status.APPLIED), acks[0])


def refusal(transfer: OutgoingTransfer, ack: frame.Ack) -> TransferError:
    """What an answer says that is no acknowledgement."""
    reason = {frame.Status.FULL: Fault.FULL, frame.Status.ABORTED: Fault.ABORTED}.get(
        ack.status, Fault.REFUSED
    )
    broken = ack.status is frame.Status.BROKEN
    return TransferError(reason, f"request {transfer.request}", ack.reason, broken)
