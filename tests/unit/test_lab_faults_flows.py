"""Faults that count: what they hit is in the record when they end, and only then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from testbed.contract.event import Kind
from testbed.contract.fault import LinkFault, ResetFault, Span, TrafficFault
from testbed.contract.sieve import Hold, Sieve
from testbed.errors import LabError
from testbed.lab.faults import Faults
from testbed.lab.namespace import HERE
from testbed.run.deed import planned_deeds
from tests.fakes.guarded_lab import AGENT, ROUTER
from tests.unit.test_lab_faults import LINK, OPEN, Stage
from tests.unit.test_traffic import LOOPBACK, free_ports

pytestmark = pytest.mark.unit
NOW = (Span(begin_ns=0, end_ns=10**9),)
BEGAN, ENDED = Kind.FAULT_BEGAN, Kind.FAULT_ENDED


@pytest.fixture(autouse=True)
def _ledgers_are_closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


class Counting(Stage):
    """A stage whose wires count, and whose nodes are all here."""

    def __init__(self) -> None:
        super().__init__()
        self.hit: dict[int, int] = {}
        self.told: list[tuple[Kind, str, int | None]] = []

    def paths(self) -> Mapping[str, str]:
        return {AGENT: HERE, ROUTER: HERE}

    def count_from_now(self, name: str, effect: Sieve | Hold) -> None:
        self.hit[getattr(effect, "number", -1)] = 0

    def hits(self, name: str, effect: Sieve | Hold) -> int:
        return self.hit[getattr(effect, "number", -1)]

    def note(self, kind: Kind, fault: str, subject: str, hits: int | None = None) -> int:
        self.told.append((kind, fault, hits))
        return 0


def sieve(name: str, number: int) -> LinkFault:
    return LinkFault(
        name=name, spans=NOW, links=(LINK.name,), forward=True, backward=False,
        effect=Sieve(kind="blackhole", number=number),
    )  # fmt: skip


def test_each_sieve_tells_its_own_hits_and_leaves_the_other(tmp_path: Path) -> None:
    stage = Counting()
    faults = stage.faults(tmp_path)
    one, other = sieve("hole", 0), sieve("pit", 1)
    faults.begin(other)
    faults.begin(one)
    assert [found.number for found in stage.now.forward.sieves] == [0, 1]
    stage.hit = {0: 3, 1: 5}
    faults.end(other)
    assert [found.number for found in stage.now.forward.sieves] == [0]
    faults.end(one)
    assert stage.now == LINK
    faults.begin(one)
    faults.end_all()
    assert stage.told == [
        (BEGAN, "pit", None), (BEGAN, "hole", None), (ENDED, "pit", 5), (ENDED, "hole", 3),
        (BEGAN, "hole", None), (ENDED, "hole", 0),
    ]  # fmt: skip


def traffic(source: int, target: int) -> TrafficFault:
    return TrafficFault(
        name="others", spans=NOW, nodes=(AGENT,), source_addresses=(LOOPBACK,), to=ROUTER,
        to_address=LOOPBACK, port=target, source_port=source, flows=1, on_ns=0, off_ns=0, seed=1,
    )  # fmt: skip


def test_traffic_is_sent_until_it_ends_and_tells_its_bytes(tmp_path: Path) -> None:
    stage = Counting()
    faults = stage.faults(tmp_path)
    fault = traffic(*free_ports(2))
    for _ in range(2):
        faults.begin(fault)
        with pytest.raises(LabError, match="in force already"):
            faults.begin(fault)
        faults.end(fault)
    assert [kind for kind, _, _ in stage.told] == [BEGAN, ENDED] * 2
    assert all((told is None) == (kind is BEGAN) for kind, _, told in stage.told)
    assert stage.ledger.undo_all() == ()


def test_a_reset_is_over_at_once_and_has_no_end_to_come(tmp_path: Path) -> None:
    stage = Counting()
    faults = stage.faults(tmp_path)
    (port,) = free_ports(1)
    fault = ResetFault(
        name="cut-off", spans=(Span(begin_ns=5, end_ns=6),), nodes=(AGENT,), port=port
    )
    (deed,) = planned_deeds((fault,))
    deed.do(faults)
    assert deed.at_ns == 5
    assert stage.told == [(BEGAN, "cut-off", None), (ENDED, "cut-off", 0)]
    faults.end_all()
    assert len(stage.told) == 2


def test_a_reset_of_nobody_is_refused(tmp_path: Path) -> None:
    faults: Faults = Counting().faults(tmp_path)
    with pytest.raises(LabError, match="nobody"):
        faults.begin(ResetFault(name="cut-off", spans=NOW, nodes=("nobody",)))
