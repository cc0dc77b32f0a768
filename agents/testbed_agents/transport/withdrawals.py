"""Transfers that end before they are applied: aborted, too late, replaced, or a part of them lost.

Each way out stops who may still write before it gives pages back; a protection that is off
(``testbed.contract.defect``) leaves the first of the two out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from testbed.contract.agent import AgentConfig
from testbed.contract.defect import Defect
from testbed_agents.clock import AgentClock
from testbed_agents.transport import frame
from testbed_agents.transport.assembly import Assemblies, Key
from testbed_agents.transport.epochs import Epochs
from testbed_agents.transport.fault import Fault, FrameError
from testbed_agents.transport.inlet import Inlet
from testbed_agents.transport.landings import Freed, Landings
from testbed_agents.transport.transfer import supersedes


class Withdrawals:
    """Of one receiver.

    Attributes:
        landings: its pages.
        applying: transfers that are being handed on.
        aborted: transfers that nobody wants, until their senders have stopped.
    """

    def __init__(
        self, config: AgentConfig, clock: AgentClock, epochs: Epochs, parts: Assemblies[Inlet],
        inlets: Mapping[Inlet, None], landings: Landings[Inlet],
    ) -> None:  # fmt: skip
        self._config = config
        self._clock = clock
        self._epochs = epochs
        self._parts = parts
        self._inlets = inlets
        self.landings = landings
        self.applying: set[Key] = set()
        self.aborted: set[Key] = set()
        self._draining: set[Key] = set()
        self._turns: dict[Key, asyncio.TimerHandle] = {}
        """Transfers of which a part was acknowledged, until the next one comes."""

    def abort(self, request: int) -> None:
        """See ``KvReceiver.abort``."""
        if not self._config.guard.pages:
            return
        for inlet in tuple(self._inlets):
            for header in inlet.under_way:
                key = (header.request, header.epoch)
                if header.request != request or key in self.applying:
                    continue
                if self._config.guards(Defect.ABORT_ACK):
                    self.aborted.add(key)
                    inlet.stop_sender()
                else:
                    self.go_on(self.landings.free(key, Freed.ABORTED, writers=1))

    def _why(self, key: Key, error: FrameError | None) -> Freed:
        if key in self.aborted:
            self.aborted.discard(key)
            return Freed.ABORTED
        late = error is not None and error.reason in (Fault.TIMEOUT, Fault.LATE)
        return Freed.GIVEN_UP if late else Freed.ENDED

    def fail(self, key: Key, lost: Inlet | None = None) -> None:
        """One part is lost: so are the others, and what comes late is not written.

        Pages are free once no part can write any more.
        """
        if key in self._draining or key in self.applying:
            return
        if lost is not None and not self._config.guards(Defect.SIBLING_DRAIN):
            others = [inlet for inlet in self._parts.fail(key) if inlet is not lost]
            freed = self.landings.free(key, Freed.PART_LOST, len(others))
            self.go_on(freed)
            return
        self._draining.add(key)
        self._epochs.fence(*key)
        for inlet in self._parts.fail(key):
            inlet.end(FrameError(Fault.PART_LOST, f"request {key[0]}", "another part failed"))
        self._draining.discard(key)
        why = Freed.ABORTED if key in self.aborted else Freed.PART_LOST
        self.aborted.discard(key)
        self.go_on(self.landings.free(key, why))

    def supersede(self, key: Key) -> None:
        """A newer attempt has begun: an earlier one writes nothing any more."""
        for inlet in tuple(self._inlets):
            for header in inlet.under_way:
                older = (header.request, header.epoch)
                if header.request == key[0] and supersedes(key[1], header.epoch):
                    self.give_up(inlet, older, Fault.LATE, f"epoch {key[1]} has come")

    def give_up(self, inlet: Inlet, key: Key, reason: Fault, cause: str) -> None:
        """Nothing more is written of a transfer, and its pages are free."""
        if self._config.guards(Defect.LATE_WRITE_FENCE):
            inlet.end(FrameError(reason, f"request {key[0]}", cause))
        elif key not in self.applying:
            self.go_on(self.landings.free(key, Freed.GIVEN_UP, writers=1))

    def await_turn(self, inlet: Inlet, key: Key) -> None:
        """A part is here for good; the next one has to come in the time of a transfer."""
        if self._config.guards(Defect.TRANSFER_DEADLINE):
            late = inlet.loop.time() + self._clock.seconds(self._config.pool.transfer_timeout_ns)
            self._turns[key] = inlet.loop.call_at(late, self._turn_overdue, key)

    def take_turn(self, key: Key) -> None:
        """The next part has come."""
        turn = self._turns.pop(key, None)
        if turn is not None:
            turn.cancel()

    def _turn_overdue(self, key: Key) -> None:
        del self._turns[key]
        self.fail(key)

    def go_on(self, inlets: tuple[Inlet, ...]) -> None:
        """These have got the pages that they waited for."""
        for inlet in inlets:
            inlet.proceed()

    def ended(self, inlet: Inlet, header: frame.Header, error: FrameError | None) -> None:
        """The connection of a transfer is closed; whoever applies it frees its pages."""
        key = (header.request, header.epoch)
        if header.parts > 1:
            self.fail(key, inlet)
        elif key not in self.applying:
            self.go_on(self.landings.free(key, self._why(key, error)))

    def close(self) -> None:
        """Nobody hands anything on any more, and no further part comes."""
        self.applying.clear()
        for key in tuple(self._turns):
            self.take_turn(key)
            self.fail(key)
