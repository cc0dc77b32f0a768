"""Looks after a lab while agents work: what ended, what is back, what is not as planned.

::

    a wire or router ended ── runs again within a second, reads back as planned ──▶ node.back, go on
                          └── does not ──▶ invalid
    anything of a wire differs from what its links are meant to be ──▶ shaping.lost, invalid
    devices, addresses or routes of another node changed ──▶ shaping.lost, invalid
    an agent ended ──▶ the crew's affair

While a wire is away nothing passes its links, so nothing passes unshaped. What a fault of the
run wants is expected. Changes are told by the kernel, so ``look`` costs little.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, Self

from testbed.contract.event import Kind
from testbed.contract.role import NodeKind
from testbed.errors import FidelityError, LabError
from testbed.lab.alarm import Alarm
from testbed.lab.faults import Faults
from testbed.lab.protocol import Agents, Lab
from testbed.lab.sampler import Sampler
from testbed.lab.standing import Standing, changed, standing_of
from testbed.lab.wires import Wires, differences

AWAY_MOST_NS = 900_000_000
"""How long a wire or router may be known to have ended before it runs again, without any fault
wanting it; with a look every 100 ms it is then at most a second."""
_SET_UP_NS = 60_000_000_000
"""How long one that runs again, or that a fault starts anew, may take to set itself up."""
_NS = 1e9


class Guard:
    """Use as a context manager; call ``look`` several times a second."""

    def __init__(
        self, lab: Lab, wires: Wires, agents: Agents, sampler: Sampler, faults: Faults,
        alarm: Alarm | None = None, standing: Callable[[str], Standing] = standing_of,
    ) -> None:  # fmt: skip
        """As of now everything counts as planned.

        Args:
            alarm: tells of changes; by default the kernel's own news, of every namespace.
            standing: how the node at a namespace's path stands in the network.
        """
        self._lab, self._wires, self._agents = lab, wires, agents
        self._sampler, self._faults = sampler, faults
        self._kinds = {node.name: node.kind for node in lab.network.nodes}
        self._away: dict[str, int] = {}
        """When wires and routers that are away were found to be so."""
        self._how: dict[str, str] = {}
        """How they ended, in words."""
        self._gone: set[str] = set()
        """Agents whose first process ended: they have no part in the run any more."""
        self._alarm = Alarm(lab.paths()) if alarm is None else alarm
        self._standing_of = standing
        self._standing: dict[str, Standing] = {
            name: standing(path)
            for name, path in lab.paths().items()
            if self._kinds[name] is not NodeKind.WIRE
        }
        self._agreed_ns = 0
        """The last look that found everything as it is meant to be."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._alarm.close()

    def look(self, at_ns: int) -> None:
        """Looks once; ``at_ns`` is the lab's time since the barrier.

        Raises:
            FidelityError: shaping was lost, or a wire or router is away for too long.
            AgentError: an agent ended that nobody told to.
            LabError: a node that a fault started anew does not come back.
        """
        for node, how in self._lab.fallen().items():
            self._lose(node, how, at_ns)
        for node, since_ns in tuple(self._away.items()):
            self._await(node, since_ns, at_ns)
        for node in self._alarm.rung():
            self._compare(node, at_ns)
        self._agreed_ns = at_ns

    def conclude(self) -> None:
        """The last look, at everything, whether the kernel told of a change or not.

        Raises:
            FidelityError: as ``look``, and for whoever is away at the end, however short.
        """
        self.look(self._agreed_ns)
        for node in self._kinds:
            if node in self._away and not self._faults.wants_end_of(node):
                self._give_up(node, self._away[node], FidelityError)
            if node not in self._away and node not in self._gone:
                self._compare(node, self._agreed_ns)

    def _lose(self, node: str, how: str, at_ns: int) -> None:
        wanted = self._faults.wants_end_of(node)
        self._sampler.note(Kind.NODE_LOST, peer=node, wanted=wanted, how=how)
        self._alarm.leave(node)
        if self._kinds[node] is NodeKind.AGENT:
            self._gone.add(node)
            self._agents.fell(node, how)
            return
        if self._kinds[node] is NodeKind.WIRE and node not in self._away:
            self._wires.leave(node)
        self._away.setdefault(node, at_ns)
        self._how[node] = how

    def _await(self, node: str, since_ns: int, at_ns: int) -> None:
        """Takes a node up that is back, or says that it is away for too long."""
        wanted = self._faults.wants_end_of(node)
        if wanted and not self._faults.wants_back(node):
            return
        if self._lab.risen(node):
            self._take_up(node, since_ns, at_ns)
            return
        away_ns = at_ns - since_ns
        if away_ns < AWAY_MOST_NS:
            return
        if away_ns >= _SET_UP_NS or not (wanted or self._lab.returning(node)):
            self._give_up(node, since_ns, LabError if wanted else FidelityError)

    def _give_up(self, node: str, since_ns: int, kind: type[LabError | FidelityError]) -> NoReturn:
        how = (
            f"{self._how[node]} {since_ns / _NS:.3f} s after the barrier at the latest; it is away"
        )
        self._sampler.note(Kind.SHAPING_LOST, peer=node, how=how)
        raise kind(
            "keep the links as planned", node, f"{how}, and nothing passes its links",
            f"see logs/{node}.container.log; leave the containers of a run alone",
        )  # fmt: skip

    def _take_up(self, node: str, since_ns: int, at_ns: int) -> None:
        del self._away[node]
        path = self._lab.paths()[node]
        anew = False
        if self._kinds[node] is NodeKind.WIRE:
            anew = self._wires.take_up(node, path)
            self._sampler.renew(link.name for link in self._wires.links_of(node))
        self._alarm.listen(node, path)
        self._compare(node, at_ns)
        self._faults.is_back(node)
        self._sampler.note(Kind.NODE_BACK, peer=node, away_ns=at_ns - since_ns, anew=anew)

    def _compare(self, node: str, at_ns: int) -> None:
        if self._kinds[node] is NodeKind.WIRE:
            checks = self._wires.read_wire(node)
            if not all(check.ok for check in checks) and not self._ended_just_now(node, at_ns):
                self._refuse(node, differences(checks), at_ns)
        elif not self._faults.wants_changed(node):
            how = changed(self._standing[node], self._standing_of(self._lab.paths()[node]))
            if how and not self._ended_just_now(node, at_ns):
                self._refuse(node, how, at_ns)

    def _ended_just_now(self, node: str, at_ns: int) -> bool:
        """Whether it ended since this look began: its devices go with it."""
        fallen = self._lab.fallen()
        for name, how in fallen.items():
            self._lose(name, how, at_ns)
        return node in fallen

    def _refuse(self, node: str, how: str, at_ns: int) -> NoReturn:
        self._sampler.note(Kind.SHAPING_LOST, peer=node, how=how)
        raise FidelityError(
            "keep the links as planned", node,
            f"between {self._agreed_ns / _NS:.3f} and {at_ns / _NS:.3f} s after the barrier it "
            f"was changed: {how}",
            "something else changed it: leave the lab alone while a run is on",
        )  # fmt: skip
