"""A lab with one wire, one router and one agent, whose nodes fall, rise and change on command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testbed.contract.event import Kind
from testbed.contract.link import LinkSpec
from testbed.contract.network import End, Link, Network, Node
from testbed.contract.role import NodeKind, Role
from testbed.errors import AgentError
from testbed.lab.guard import Guard
from testbed.lab.tc.applied import Direction, FieldCheck

WIRE, ROUTER, AGENT = "wan1", "tor-a", "p1"
_SPEC = LinkSpec(delay_ns=1_000_000, rate_bps=10**9, buffer_bytes=10**6)
_LINK = Link(
    name="wan1", kind="wan", wire=WIRE,
    a=End(node=AGENT, interface="eth0", wire_device="a0"),
    b=End(node=ROUTER, interface="r0", wire_device="b0"),
    inner=("i0", "i1"), forward=_SPEC, backward=_SPEC,
)  # fmt: skip
NETWORK = Network(
    nodes=(
        Node(name=AGENT, kind=NodeKind.AGENT, site="a", role=Role.PREFILL),
        Node(name=ROUTER, kind=NodeKind.ROUTER, site="a"),
        Node(name=WIRE, kind=NodeKind.WIRE, site="a"),
    ),
    links=(_LINK,),
    routes=(),
    neighbours=(),
)


class GuardedLab:
    """Everything that a guard looks at: lab, wires, agents, faults, sampler and alarm in one."""

    network = NETWORK

    def __init__(self) -> None:
        self.fell_now: dict[str, str] = {}
        self.rises: set[str] = set()
        self.runs_again: set[str] = set()
        self.ringing: list[str] = []
        self.wrong: dict[str, str] = {}
        self.wanted: set[str] = set()
        self.notes: list[tuple[Kind, object]] = []
        self.open = {WIRE}
        self.heard: dict[str, bool] = dict.fromkeys((AGENT, ROUTER, WIRE), True)
        self.anew: list[str] = []

    def guard(self) -> Guard:
        """A guard of this lab."""
        return Guard(self, self, self, self, self, self, self.standing)  # type: ignore[arg-type]

    def of(self, kind: Kind) -> list[object]:
        """Whom the notes of one kind are about."""
        return [peer for noted, peer in self.notes if noted is kind]

    # as a lab
    def paths(self) -> Mapping[str, str]:
        return {name: name for name in self.heard}

    def fallen(self) -> Mapping[str, str]:
        fell, self.fell_now = self.fell_now, {}
        return fell

    def risen(self, node: str) -> bool:
        return node in self.rises and not self.rises.remove(node)  # type: ignore[func-returns-value]

    def returning(self, node: str) -> bool:
        return node in self.runs_again

    # as wires
    def links_of(self, wire: str) -> tuple[Link, ...]:
        return (_LINK,) if wire == WIRE else ()

    def leave(self, node: str) -> None:
        """Of wires and of the alarm alike."""
        self.open.discard(node)
        self.heard[node] = False

    def take_up(self, node: str, path: str) -> bool:
        self.open.add(node)
        return False

    def read_wire(self, node: str) -> tuple[FieldCheck, ...]:
        how = self.wrong.get(node, "")
        return (
            FieldCheck(
                link=_LINK.name, direction=Direction.FORWARD, device="i0", field="qdisc",
                requested="netem", compiled="netem", applied=how or "netem", ok=not how,
            ),
        )  # fmt: skip

    # as agents
    def fell(self, node: str, how: str) -> None:
        if node not in self.wanted:
            raise AgentError("run an agent", node, how)

    # as faults
    def wants_end_of(self, node: str) -> bool:
        return node in self.wanted

    def wants_back(self, node: str) -> bool:
        return node in self.wanted

    def wants_changed(self, node: str) -> bool:
        return node in self.wanted

    def is_back(self, node: str) -> None:
        self.wanted.discard(node)

    # as a sampler
    def note(self, kind: Kind, **fields: object) -> int:
        self.notes.append((kind, fields["peer"]))
        return 0

    def renew(self, links: Iterable[str]) -> None:
        self.anew.extend(links)

    # as an alarm
    def rung(self) -> tuple[str, ...]:
        rang, self.ringing = tuple(n for n in self.ringing if self.heard[n]), []
        return rang

    def listen(self, node: str, path: str) -> None:
        self.heard[node] = True

    def close(self) -> None:
        self.heard.clear()

    def standing(self, path: str) -> frozenset[str]:
        """How a node stands; ``path`` is its name here."""
        return frozenset({f"device eth0 {self.wrong.get(path, 'up')}"})
