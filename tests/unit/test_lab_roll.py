"""Which ends of agents are failures: all but those that were told to, or that a fault wants."""

from __future__ import annotations

import pytest

from testbed.errors import AgentError
from testbed.lab.roll import Roll
from tests.fakes.fake_run import FakeRun
from tests.fakes.pool_plan import make_plan

pytestmark = pytest.mark.unit


@pytest.fixture
def roll() -> Roll:
    return Roll(make_plan(FakeRun(), ()))


@pytest.mark.parametrize(("node", "status"), [("p1", 0), ("p1", -9), ("c1", 1)])
def test_who_ends_too_early_or_badly_is_named_with_the_cause(
    roll: Roll, node: str, status: int
) -> None:
    with pytest.raises(AgentError, match=rf"{node}: it ended with status {status} .*: no memory"):
        roll.end(node, status, "no memory")


@pytest.mark.parametrize("status", [0, -9])
def test_an_end_that_a_fault_wants_is_none(roll: Roll, status: int) -> None:
    roll.excused.add("p1")
    roll.end("p1", status)
    assert "p1" not in roll.alive()


def test_clients_end_by_themselves_and_the_others_when_told_to(roll: Roll) -> None:
    roll.end("c1", 0)
    assert roll.clients_ended()
    roll.stopping = True
    for node in roll.alive():
        roll.end(node, 0)
    assert roll.alive() == frozenset()
