"""What is done to a lab on purpose while agents work: written down, verified, undone.

Faults of links act inside the wires and are the same in every lab; faults of nodes are what the
lab at hand can do. Each is in the ledger from before it begins until it is undone, and in the
record (``fault.began``, ``fault.ended``). What a fault changes is wanted: it is no lost shaping.

Any number of a plan's faults may act on one link at once (``lab.linkfaults``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self, TypeAlias

from testbed.contract.event import Kind
from testbed.contract.fault import LinkFault, NodeFault, ResetFault, TrafficFault
from testbed.contract.link import LinkSpec
from testbed.contract.sieve import Hold, Sieve
from testbed.errors import LabError, TestbedError
from testbed.lab.ledger import Ledger
from testbed.lab.linkfaults import LinkFaults
from testbed.lab.protocol import Agents, Lab
from testbed.lab.reset import reset_connections
from testbed.lab.sampler import Sampler
from testbed.lab.traffic import Traffic, streams
from testbed.lab.wires import Wires

LabFault: TypeAlias = LinkFault | NodeFault | ResetFault | TrafficFault
"""What the lab applies; agents apply theirs themselves."""


class Faults:
    """Every fault of one run. A context manager: leaving it undoes what is in force. Agents are
    told to end after that, for one that stands still would not hear it.

    Each method raises LabError for a node or link that is not there, for a fault that is in force
    already or not at all, and where the lab cannot do it; FidelityError where a link is not as
    it was meant to become.
    """

    def __init__(
        self, lab: Lab, wires: Wires, agents: Agents, sampler: Sampler, ledger: Ledger
    ) -> None:
        self._lab = lab
        self._nodes = lab.node_faults()
        self._names = frozenset(node.name for node in lab.network.nodes)
        self._link_names = frozenset(link.name for link in lab.network.links)
        self._workers = frozenset(n.name for n in lab.network.nodes if n.role is not None)
        self._wires = wires
        self._agents = agents
        self._sampler = sampler
        self._ledger = ledger
        self._held: dict[tuple[str, str], None] = {}
        self._called: dict[tuple[str, str], str] = {}
        """How the plan calls what is done, by act and node, or by key and link."""
        self._links = LinkFaults(lab.network, wires, sampler)
        self._counts: dict[tuple[str, str], Callable[[], int]] = {}
        """How often something hit that counts: frames, bytes."""
        self._ending: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.end_all()
        except TestbedError:
            if error is None:
                raise  # else the first error counts; the ledger keeps what is not undone

    def wants_end_of(self, node: str) -> bool:
        """Whether a fault made a node end, and it did not come back yet."""
        return node in self._ending

    def wants_back(self, node: str) -> bool:
        """Whether such a node is to come back by itself."""
        return node in self._ending and ("kill", node) not in self._held

    def wants_changed(self, node: str) -> bool:
        """Whether a fault changed how a node stands in the network."""
        return ("disconnect", node) in self._held

    def is_back(self, node: str) -> None:
        """Notes that a node is there again."""
        self._ending.discard(node)

    def pause(self, node: str) -> None:
        """The programs of a node stand still."""
        self._begin("pause", node, self._nodes.pause, self._nodes.resume)

    def resume(self, node: str) -> None:
        """They go on."""
        self._end("pause", node)

    def kill(self, node: str) -> None:
        """The programs of a node end at once. An agent never comes back within a run."""
        self._expect_end("kill", node)
        agent = node in self._workers
        self._begin("kill", node, self._nodes.kill, None if agent else self._nodes.revive)

    def revive(self, node: str) -> None:
        """A killed wire or router starts anew and shapes itself."""
        self._end("kill", node)

    def restart(self, node: str) -> None:
        """The programs of a node end at once and start anew.

        An agent that starts anew has no part in the run any more: its record is closed.
        """
        self._expect_end("restart", node)
        self._begin("restart", node, self._nodes.restart, None)

    def disconnect(self, node: str) -> None:
        """A node loses its links."""
        self._begin("disconnect", node, self._nodes.disconnect, self._nodes.connect)

    def connect(self, node: str) -> None:
        """It has them again."""
        self._end("disconnect", node)

    def reshape(self, link: str, forward: LinkSpec, backward: LinkSpec) -> None:
        """A link is another one from now on; what is queued or under way stays where it can.

        Rates and times are those of the lab's clock (see ``contract.scale.paced``).
        """
        old = self._wires.link(link)

        def change(name: str) -> None:
            self._links.shape(name, forward, backward)

        def undo(name: str) -> None:
            self._links.shape(name, old.forward, old.backward)

        self._begin("reshape", link, change, undo)

    def restore(self, link: str) -> None:
        """It is as planned again."""
        self._end("reshape", link)

    def cut(self, link: str) -> None:
        """Nothing passes a link; what is queued there is lost. Neither end loses its carrier."""
        self._begin("cut", link, self._wires.cut, self._wires.mend)

    def mend(self, link: str) -> None:
        """Everything passes again."""
        self._end("cut", link)

    def begin(self, fault: LabFault) -> None:
        """A fault of the plan comes into force, on everything that it names."""
        if isinstance(fault, ResetFault):
            self._reset(fault)
            return
        if isinstance(fault, TrafficFault):
            self._begin_traffic(fault)
            return
        if isinstance(fault, NodeFault):
            for node in fault.nodes:
                self._called[fault.act, node] = fault.name
                self._acts[fault.act][0](node)
            return
        key = _key(fault)
        for link in fault.links:
            self._called[key, link] = fault.name
            if isinstance(fault.effect, Sieve | Hold):
                self._wires.count_from_now(link, fault.effect)
                self._counts[key, link] = partial(self._wires.hits, link, fault.effect)
            self._begin(
                key, link, partial(self._links.strike, fault), partial(self._links.spare, fault)
            )

    def end(self, fault: LabFault) -> None:
        """It ends; what else acts on the same links goes on."""
        if isinstance(fault, ResetFault):
            return
        if isinstance(fault, TrafficFault):
            for node in fault.nodes:
                self._end(_key(fault), node)
            return
        if isinstance(fault, NodeFault):
            for node in fault.nodes:
                undo = self._acts[fault.act][1]
                if undo is not None:
                    undo(node)
            return
        for link in fault.links:
            self._end(_key(fault), link)

    def end_all(self) -> None:
        """Undoes what is in force, in reverse order."""
        for fault, subject in reversed(tuple(self._held)):
            self._end(fault, subject)

    @property
    def _acts(
        self,
    ) -> dict[str, tuple[Callable[[str], None], Callable[[str], None] | None]]:
        return {
            "pause": (self.pause, self.resume),
            "kill": (self.kill, self.revive),
            "restart": (self.restart, None),
            "disconnect": (self.disconnect, self.connect),
        }

    def _begin_traffic(self, fault: TrafficFault) -> None:
        paths = self._lab.paths()
        for stream in streams(fault):
            traffic = Traffic(stream, paths[stream.node], paths[fault.to])
            key = _key(fault)
            self._called[key, stream.node] = fault.name
            self._counts[key, stream.node] = traffic.delivered
            self._begin(key, stream.node, traffic.begin, traffic.end)

    def _reset(self, fault: ResetFault) -> None:
        """It is over as soon as it came; ``hits`` are connections."""
        for node in fault.nodes:
            key = _key(fault)
            self._called[key, node] = fault.name
            self._refuse_unknown(key, node)
            self._ledger.acquire("fault", f"{key} {node}")
            self._note(Kind.FAULT_BEGAN, key, node)
            ended = reset_connections(self._lab.paths()[node], fault.peer, fault.port)
            self._note(Kind.FAULT_ENDED, key, node, hits=ended)

    def _expect_end(self, fault: str, node: str) -> None:
        self._refuse_unknown(fault, node)
        if node in self._workers:
            self._agents.excuse(node)
        self._ending.add(node)

    def _begin(
        self, fault: str, subject: str, do: Callable[[str], None],
        undo: Callable[[str], None] | None,
    ) -> None:  # fmt: skip
        self._refuse_unknown(fault, subject)
        if (fault, subject) in self._held:
            raise LabError(f"{fault} for a while", subject, "that is in force already")
        if undo is None:
            self._ledger.acquire("fault", f"{fault} {subject}")
        else:
            self._ledger.acquire("fault", f"{fault} {subject}", partial(undo, subject))
            self._held[fault, subject] = None
        do(subject)
        self._note(Kind.FAULT_BEGAN, fault, subject)

    def _end(self, fault: str, subject: str) -> None:
        if (fault, subject) not in self._held:
            raise LabError(f"undo {fault}", subject, "it is not in force")
        del self._held[fault, subject]
        self._ledger.undo("fault", f"{fault} {subject}")
        count = self._counts.pop((fault, subject), None)
        if count is None:
            self._note(Kind.FAULT_ENDED, fault, subject)
        else:
            self._note(Kind.FAULT_ENDED, fault, subject, hits=count())

    def _note(self, kind: Kind, fault: str, subject: str, **count: int) -> None:
        called = self._called.get((fault, subject), fault)
        self._sampler.note(kind, fault=called, subject=subject, **count)

    def _refuse_unknown(self, fault: str, subject: str) -> None:
        if fault in ("reshape", "cut") or subject in self._link_names:
            self._wires.link(subject)
        elif subject not in self._names:
            raise LabError(
                fault, subject, "the network has no such node", "see network.nodes of plan.json"
            )


def _key(fault: LinkFault | ResetFault | TrafficFault) -> str:
    """No author's name may be taken for an act: a link is often called like its wire."""
    return f"planned {fault.name}"
