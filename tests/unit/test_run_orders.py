"""Faults that are ordered while a run is under way on the real clock."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from testbed.contract.fault import LinkFault, NodeFault
from testbed.contract.lateness import BARRIER_FILE
from testbed.contract.order import answer_to, orders_of
from testbed.contract.progress import FOLDER, Mark
from testbed.errors import LabError, PlanError, ScenarioError, UsageError
from testbed.lab.hostledger import HostLedger, Kind
from testbed.run.command import apply_fault, end_fault
from testbed.run.orders import Orders
from testbed.run.prepare import prepare

pytestmark = pytest.mark.unit
S = 10**9


class Acts:
    """Faults that only note what they are told; a second time on one link is refused."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self._held: set[tuple[str, ...]] = set()

    def begin(self, fault: LinkFault | NodeFault) -> None:
        subject = fault.links if isinstance(fault, LinkFault) else fault.nodes
        if subject in self._held:
            raise LabError("down for a while", subject[0], "that is in force already")
        self._held.add(subject)
        self.told.append(("begin", fault.name))

    def end(self, fault: LinkFault | NodeFault) -> None:
        self._held.discard(fault.links if isinstance(fault, LinkFault) else fault.nodes)
        self.told.append(("end", fault.name))


class World:
    """A run under way, whose lab looks at its orders until the test is over."""

    def __init__(self, folder: Path, clock: str) -> None:
        self.run, self.cache, self.acts = folder / "run", folder / "cache", Acts()
        self.run.mkdir()
        self.now_ns = 0
        prepared = prepare("pdd-hello", clock=clock, place=folder)  # type: ignore[arg-type]
        self.scale = prepared.plan.scale
        (self.run / "plan.json").write_text(prepared.plan.model_dump_json())
        (self.run / "scenario.yaml").write_text(prepared.scenario.resolved_yaml())
        (self.run / BARRIER_FILE).write_text(str(1_000 * S))
        (self.run / FOLDER).mkdir(parents=True)
        Mark(self.run / FOLDER, "lab").touch(1_005 * S)
        self.ledger = HostLedger(self.cache)
        self._over = threading.Event()
        self._lab = threading.Thread(target=self._look)

    def __enter__(self) -> World:
        self.ledger.__enter__()
        self.ledger.acquire(Kind.RUN, self.run.resolve())
        self._lab.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._lab.join()
        self.ledger.release(Kind.RUN, self.run.resolve())
        self.ledger.__exit__(None, None, None)

    def _look(self) -> None:
        orders = Orders(self.run)
        while not self._over.wait(0.001):
            orders.take(self.acts, self.now_ns)  # type: ignore[arg-type]

    def apply(self, text: str) -> str:
        return apply_fault(self.run, text, self.cache)[0]


def test_a_fault_is_applied_and_ended_by_name(tmp_path: Path) -> None:
    with World(tmp_path, "real") as world:
        name = world.apply("{kind: down, link: wan1}")
        with pytest.raises(UsageError, match="no fault of that name") as unknown:
            end_fault(world.run, "down-9", world.cache)
        assert name in unknown.value.remedy
        end_fault(world.run, name, world.cache)
        assert world.acts.told == [("begin", name), ("end", name)]
        with pytest.raises(LabError, match="over already"):
            end_fault(world.run, name, world.cache)
        order = orders_of(world.run)[0].fault
        assert isinstance(order, LinkFault)
        assert (order.links, order.cuts) == (("wan1",), True)
        assert order.spans[0].begin_ns == world.scale.emulated_ns(5 * S)


def test_what_has_a_duration_ends_by_itself(tmp_path: Path) -> None:
    with World(tmp_path, "real") as world:
        world.apply("{kind: pause, node: md1, duration: 1 s, name: nap}")
        world.now_ns = S - 1
        world.apply("{kind: down, link: wan1}")
        assert world.acts.told[-1][0] == "begin"
        world.now_ns = S
        patience = time.monotonic() + 20
        while len(world.acts.told) < 3:
            assert time.monotonic() < patience
        assert world.acts.told == [("begin", "nap"), ("begin", "order-2"), ("end", "nap")]
        assert world.apply("{kind: pause, node: md1, name: nap}") == "nap"


def test_connections_are_reset_at_once_and_traffic_lasts(tmp_path: Path) -> None:
    with World(tmp_path, "real") as world:
        cut = world.apply("{kind: reset, node: p1, port: data}")
        flood = world.apply("{kind: traffic, node: p2, to: md1}")
        with pytest.raises(LabError, match="over already"):
            end_fault(world.run, cut, world.cache)
        end_fault(world.run, flood, world.cache)
        assert world.acts.told == [("begin", cut), ("begin", flood), ("end", flood)]


def test_what_the_lab_refuses_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    with World(tmp_path, "real") as world:
        world.apply("{kind: down, link: wan1}")
        with pytest.raises(LabError, match="in force already"):
            world.apply("{kind: rate, link: wan1, to: 8 Mbit/s}")
        answer = answer_to(world.run, 2)
        assert answer is not None
        assert answer.refused == "that is in force already"
        world.apply("{kind: down, link: wan2}")


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("{kind: down, link: wan9}", PlanError, "wan9"),
        ("{kind: dwn, link: wan1}", ScenarioError, "dwn"),
        ("{kind: down, link: wan1, at: 2 s}", UsageError, "at cannot be given"),
        ("{kind: down, link: wan1, every: 2 s, times: 2}", UsageError, "every, times cannot"),
        ("{kind: stall, node: md1}", UsageError, "agents apply their own"),
        ("{kind: hold, link: wan1, stop: 1 ms, each: 5 ms}", UsageError, "built with a gate"),
        ("{kind: restart, node: md1}", PlanError, "compose"),
        ("[1, 2]", UsageError, "no mapping"),
        ("{kind: down", UsageError, "no YAML"),
    ],
)
def test_what_cannot_be_ordered_is_refused_before_the_lab_hears_of_it(
    text: str, kind: type[Exception], words: str, tmp_path: Path
) -> None:
    with World(tmp_path, "real") as world:
        with pytest.raises(kind, match=words):
            world.apply(text)
        assert orders_of(world.run) == ()


def test_under_the_virtual_clock_breakpoints_are_the_remedy(tmp_path: Path) -> None:
    with World(tmp_path, "virtual") as world, pytest.raises(UsageError) as refused:
        world.apply("{kind: down, link: wan1}")
    assert "breakpoints" in refused.value.remedy


def test_a_run_that_is_over_or_has_not_begun_takes_no_orders(tmp_path: Path) -> None:
    with World(tmp_path, "real") as world:
        (world.run / BARRIER_FILE).unlink()
        with pytest.raises(UsageError, match="not begun"):
            world.apply("{kind: down, link: wan1}")
    with pytest.raises(UsageError, match="not under way"):
        apply_fault(world.run, "{kind: down, link: wan1}", world.cache)
    with pytest.raises(UsageError, match="no run folder"):
        apply_fault(tmp_path, "{kind: down, link: wan1}", world.cache)
