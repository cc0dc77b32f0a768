"""Faults that wait for a transfer: seen by its sender, begun by whoever is to apply them."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.contract.ailment import DropConnection, Leave, SlowCompute
from testbed.contract.event import EventLog
from testbed.contract.fault import AgentFault, Down, LinkFault, Span
from testbed.contract.role import Role
from testbed.contract.scale import FULL
from testbed.contract.trigger import Reached, Trigger, Watch
from testbed.errors import PlanError, ScenarioError
from testbed.plan.faults import plan_faults
from testbed.plan.network import build_network
from testbed.plan.roster import roster
from testbed.plan.triggers import watches
from testbed.run.awaited import Awaited
from testbed.scenario import load_scenario
from testbed_agents.clock import AgentClock, new_loop
from testbed_agents.transport.affliction import Affliction
from testbed_agents.trouble import Trouble
from tests.fakes.backstage import JumpClock
from tests.fakes.jump_loop import JumpLoop
from tests.fakes.kv_pair import make_config
from tests.unit.test_scenario_ailments import written

pytestmark = pytest.mark.unit
MS = 10**6
SEEN = Trigger(sender="p1", receiver="md1", transfer=3, progress=0.4)
WHEN = "when: {pair: [p1, md1], transfer: 3, progress: 40 %}"


class FakeSender:
    """A pool of which tests say how far it is."""

    def __init__(self) -> None:
        self.affliction = Affliction()
        self.progress = self
        self.withheld = self
        self.watched: list[tuple[int, float, Callable[[int], None]]] = []
        self.dropped: list[tuple[int, bool]] = []

    def watch(self, transfer: int, progress: float, reached: Callable[[int], None]) -> None:
        self.watched.append((transfer, progress, reached))

    def shrink(self, fewer: int) -> None:
        """Nothing to see."""

    def keep_ports(self, left: int | None) -> None:
        """Nothing to see."""

    def drop(self, connection: int, clean: bool) -> bool:
        self.dropped.append((connection, clean))
        return True


def fault(name: str, *spans: tuple[int, int | None], node: str = "p1") -> AgentFault:
    moments = tuple(
        Span(begin_ns=begin * MS, end_ns=None if end is None else end * MS) for begin, end in spans
    )
    return AgentFault(
        name=name, spans=moments, nodes=(node,), effect=SlowCompute(factor=2), trigger=SEEN
    )


def suffer(
    run: Path,
    node: str,
    faults: tuple[AgentFault, ...],
    watched: tuple[Watch, ...],
    scene: Callable[[Trouble, FakeSender, AgentClock], None],
    over: Callable[[], bool] | None = None,
) -> list[dict[str, object]]:
    """What the agent's record says; ``scene`` is played 10 ms after the barrier.

    ``over``: in real time, with descriptors, until this is so; else 200 ms on a loop that jumps.
    """
    Reached(run).open()
    stream = io.StringIO()
    clock = JumpClock() if over is None else AgentClock(time.time_ns())
    log = EventLog(stream, node, clock)
    config = make_config(Role.DECODE)(1_024).model_copy(
        update={
            "node": node, "faults": faults, "watches": watched,
            "events": str(run / "events" / "x.jsonl"),
        }
    )  # fmt: skip
    trouble, sender = Trouble(config, clock, log), FakeSender()
    trouble.senders["md1"] = sender

    async def work() -> None:
        await clock.until(10 * MS)
        scene(trouble, sender, clock)
        if over is None:
            await clock.until(200 * MS)
            return
        async with asyncio.timeout(10):
            while not over():
                await asyncio.sleep(0)

    async def main() -> None:
        trouble.start()
        await trouble.beside(work())

    with asyncio.Runner(loop_factory=JumpLoop if over is None else new_loop) as runner:
        runner.run(main())
    log.flush()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_the_sender_begins_its_own_fault_from_what_it_saw(tmp_path: Path) -> None:
    def scene(_: Trouble, sender: FakeSender, __: AgentClock) -> None:
        ((transfer, progress, reached),) = sender.watched
        assert (transfer, progress) == (3, 0.4)
        reached(17)

    told = suffer(
        tmp_path, "p1", (fault("late", (5, 20)),), (Watch(fault="late", trigger=SEEN),), scene
    )
    assert [(one["t"], one["kind"]) for one in told] == [
        (10 * MS, "fault.reached"), (15 * MS, "fault.began"), (30 * MS, "fault.ended"),
    ]  # fmt: skip
    assert told[0]["req"] == 17
    assert Reached(tmp_path).request("late") is None, "nobody else needs to know"


def test_what_begins_at_once_begins_in_the_same_turn(tmp_path: Path) -> None:
    drop = AgentFault(
        name="drop", spans=(Span(begin_ns=0, end_ns=1),), nodes=("p1",), trigger=SEEN,
        effect=DropConnection(peer="md1", connection=2, clean=False),
    )  # fmt: skip
    dropped: list[tuple[int, bool]] = []

    def scene(_: Trouble, sender: FakeSender, __: AgentClock) -> None:
        sender.watched[0][2](17)
        dropped.extend(sender.dropped)

    told = suffer(tmp_path, "p1", (drop,), (Watch(fault="drop", trigger=SEEN),), scene)
    assert dropped == [(2, False)]
    assert [(one["t"], one["kind"]) for one in told] == [
        (10 * MS, "fault.reached"), (10 * MS, "fault.began"), (10 * MS, "fault.hit"),
        (10 * MS + 1, "fault.ended"),
    ]  # fmt: skip


def test_a_fault_of_others_is_told_to_them(tmp_path: Path) -> None:
    told = suffer(
        tmp_path, "p1", (), (Watch(fault="cut", trigger=SEEN),),
        lambda _, sender, __: sender.watched[0][2](17),
    )  # fmt: skip
    assert [one["kind"] for one in told] == ["fault.reached"]
    assert Reached(tmp_path).request("cut") == 17


def test_who_did_not_see_it_begins_when_it_is_told(tmp_path: Path) -> None:
    left: list[tuple[int, bool]] = []
    leave = AgentFault(
        name="gone", spans=(Span(begin_ns=0),), nodes=("c1",), trigger=SEEN,
        effect=Leave(clean=True, share=1, seed=1),
    )  # fmt: skip

    def scene(trouble: Trouble, _: FakeSender, __: AgentClock) -> None:
        def go(request: int, clean: bool) -> bool:
            left.append((request, clean))
            return True

        trouble.leaving.leave = go
        Reached(tmp_path).tell("other", 3)
        Reached(tmp_path).tell("gone", 17)

    told = suffer(tmp_path, "c1", (leave,), (), scene, over=lambda: bool(left))
    assert [one["kind"] for one in told] == ["fault.began", "fault.hit"]
    assert left == [(17, True)]


def test_the_lab_is_told_once_and_counts_from_then(tmp_path: Path) -> None:
    reached = Reached(tmp_path)
    reached.open()
    cut = LinkFault(
        name="cut", spans=(Span(begin_ns=2 * MS, end_ns=5 * MS),), links=("wan1",), forward=True,
        backward=True, effect=Down(), trigger=SEEN,
    )  # fmt: skip
    with Awaited((cut, fault("own", (0, None))), reached) as awaited:
        assert awaited.come(1) == ()
        reached.tell("own", 1)
        assert awaited.come(2) == ()
        reached.tell("cut", 1)
        deeds = awaited.come(100 * MS)
        assert [(deed.at_ns, deed.ends) for deed in deeds] == [
            (105 * MS, True), (102 * MS, False),
        ]  # fmt: skip
        assert awaited.come(101 * MS) == ()


def planned(path: str) -> tuple[object, ...]:
    scenario = load_scenario(path)
    network = build_network(scenario, roster(scenario), 1, "mininet")
    return plan_faults(scenario, network, 1, FULL, "mininet")


def test_a_fault_may_wait_and_its_times_count_from_there(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        f"{{kind: down, link: wan1, duration: 1 s, every: 2 s, times: 2, {WHEN}}}",
        "{kind: slow, node: md1, factor: 2.0, at: 1 s}",
    )
    down, slow = faults = planned(path)
    assert isinstance(down, LinkFault)
    assert down.trigger == SEEN
    assert [span.begin_ns for span in down.spans] == [0, 2 * 10**9]
    assert isinstance(slow, AgentFault)
    assert slow.trigger is None
    assert watches(faults, "p1") == (Watch(fault="down-1", trigger=SEEN),)  # type: ignore[arg-type]
    assert watches(faults, "md1") == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("{kind: down, link: wan1}", "give at or when"),
        (f"{{kind: down, link: wan1, at: 1 s, {WHEN}}}", "give at or when"),
        ("{kind: down, link: wan1, when: {pair: [p1, md1], transfer: 0, progress: 4 %}}",
         "transfer"),
        ("{kind: down, link: wan1, when: {pair: [p1, md1], transfer: 1}}", "progress"),
        (f"{{kind: leave, node: c1, how: unclean, after: 1 s, {WHEN}}}", "give how alone"),
    ],
)  # fmt: skip
def test_what_nobody_can_wait_for_is_refused_with_its_line(
    tmp_path: Path, fault: str, reason: str
) -> None:
    path = written(tmp_path, fault)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert any(one.startswith(f"{path}:5: ") and reason in one for one in caught.value.faults), (
        caught.value.faults
    )


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("{kind: slow, node: md1, factor: 2.0, at: 1 s, duration: 1 s}",
         f"{{kind: slow, node: md1, factor: 2.0, duration: 1 s, {WHEN}}}", "behind what it waits"),
        (f"{{kind: pause, node: md1, duration: 1 s, {WHEN}}}",
         "{kind: disconnect, node: md1, at: 9 s, duration: 1 s}", "still under pause-1"),
        ("{kind: slow, node: md1, factor: 2.0, at: 1 s}",
         "{kind: down, link: wan1, when: {pair: [md1, p1], transfer: 1, progress: 4 %}}",
         "md1 sends no KV to p1"),
    ],
)  # fmt: skip
def test_what_may_meet_is_refused_with_its_line(
    tmp_path: Path, first: str, second: str, reason: str
) -> None:
    path = written(tmp_path, first, second)
    with pytest.raises(PlanError) as caught:
        planned(path)
    assert caught.value.subject == f"{path}:6"
    assert reason in caught.value.cause


def test_what_waits_for_the_same_may_follow_each_other(tmp_path: Path) -> None:
    pause = f"{{kind: pause, node: md1, duration: 1 s, {WHEN}}}"
    other = f"{{kind: slow, node: md1, factor: 2.0, duration: 1 s, {WHEN}}}"
    assert len(planned(written(tmp_path, pause, other))) == 2
