"""``faults:`` of a scenario: what authors may write, and what it becomes in the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.fault import (
    AddedDelay,
    AddedJitter,
    Down,
    LinkFault,
    NodeFault,
    PlannedFault,
    SlowRate,
    Span,
)
from testbed.contract.scale import FULL, Scale, paced
from testbed.errors import PlanError, ScenarioError
from testbed.plan.faults import agent_faults, plan_faults
from testbed.plan.network import build_network
from testbed.plan.roster import roster
from testbed.scenario import load_scenario
from testbed.scenario.injection import KINDS, kind_of
from testbed.scenario.timed import OnLinks

pytestmark = pytest.mark.unit
S, MS = 10**9, 10**6


def written(folder: Path, *faults: str, base: str = "hello") -> str:
    """A scenario with these faults; the first one is on line 5."""
    path = folder / "faults.yaml"
    lines = "\n".join(f"  - {fault}" for fault in faults)
    path.write_text(f'extends: {base}\nname: some-faults\ndescription: "test"\nfaults:\n{lines}\n')
    return str(path)


def planned(
    path: str, seed: int = 1, scale: Scale | None = None, lab: str = "mininet"
) -> tuple[PlannedFault, ...]:
    scenario = load_scenario(path)
    members = roster(scenario)
    built_at = scale or FULL
    network = paced(build_network(scenario, members, seed, "mininet"), built_at.slow)
    return plan_faults(scenario, network, seed, built_at, lab)  # type: ignore[arg-type]


def test_a_link_is_named_or_its_class_and_spans_are_drawn_out(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "{kind: down, link: wan1, at: 1 s, duration: 200 ms, every: 1 s, times: 3}",
        "{kind: delay, link: wan, direction: forward, add: 30 ms, at: 2 s, name: far}",
        "{kind: pause, node: [p1, md1], at: 2500 ms, duration: 300 ms}",
    )
    down, far, pause = planned(path)
    assert isinstance(down, LinkFault)
    assert (down.name, down.links, down.cuts) == ("down-1", ("wan1",), True)
    assert down.spans == tuple(
        Span(begin_ns=n * S, end_ns=n * S + 200 * MS) for n in (1, 2, 3)
    )  # fmt: skip
    assert isinstance(far, LinkFault)
    assert (far.name, far.links, far.forward, far.backward) == (
        "far",
        ("wan1", "wan2"),
        True,
        False,
    )
    assert far.spans == (Span(begin_ns=2 * S),)
    assert far.place.endswith("faults.yaml:6")
    assert isinstance(pause, NodeFault)
    assert (pause.nodes, pause.act) == (("p1", "md1"), "pause")


def test_the_resolved_form_says_the_same(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "{kind: loss, link: wan1, loss: {kind: gilbert-elliott, p: 1 %, r: 20 %, bad_loss: 90 %, "
        "good_loss: 0 %}, at: 1 s, duration: 10 ms}",
        "{kind: jitter, link: wan2, jitter: {spread: 1 ms, distribution: normal, reorder: false}, "
        "at: 1 s}",
        "{kind: corrupt, link: wan2, share: 1 ppm, at: 2 s, probability: 50 %}",
    )
    again = tmp_path / "again.yaml"
    scenario = load_scenario(path)
    again.write_text(scenario.resolved_yaml())
    assert load_scenario(str(again)).file == scenario.file


def test_chances_are_drawn_from_the_seed_alone(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "{kind: rate, link: wan1, to: 1 Gbit/s, at: 1 ms, duration: 1 ms, every: 10 ms, times: 400,"
        " probability: 25 %}",
    )
    spans = [planned(path, seed)[0].spans for seed in (1, 1, 2)]
    assert spans[0] == spans[1] != spans[2]
    assert 60 < len(spans[0]) < 140


def test_a_scale_changes_rates_and_delays_but_no_times(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "{kind: rate, link: wan1, to: 1 Gbit/s, at: 1 s}",
        "{kind: delay, link: wan1, add: 30 ms, at: 2 s}",
        "{kind: jitter, link: wan2, jitter: {spread: 1 ms, distribution: normal, reorder: false}, "
        "at: 1 s}",
    )
    rate, delay, jitter = planned(path, scale=Scale(size=0.01, slow=8))
    assert isinstance(rate, LinkFault)
    assert rate.effect == SlowRate(rate_bps=1_250_000)
    assert rate.spans == (Span(begin_ns=S),)
    assert isinstance(delay, LinkFault)
    assert delay.effect == AddedDelay(delay_ns=240 * MS)
    assert isinstance(jitter, LinkFault)
    assert isinstance(jitter.effect, AddedJitter)
    assert jitter.effect.jitter.spread_ns == 8 * MS


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("{kind: dwn, link: wan1, at: 1 s}", "dwn"),
        ("{kind: down, at: 1 s}", "link"),
        ("{kind: down, link: wan1, at: 1}", "at"),
        ("{kind: down, link: wan1, at: 1 s, duration: 0 s}", "longer than 0 ns"),
        ("{kind: down, link: wan1, at: 1 s, every: 2 s}", "go together"),
        ("{kind: down, link: wan1, at: 1 s, times: 2}", "go together"),
        ("{kind: down, link: wan1, at: 1 s, every: 2 s, times: 2}", "needs a duration"),
        ("{kind: down, link: wan1, at: 1 s, duration: 2 s, every: 2 s, times: 2}", "than it"),
        ("{kind: down, link: wan1, at: 1 s, probability: 0 %}", "above 0 %"),
        ("{kind: delay, link: wan1, at: 1 s, add: 0 s}", "longer than 0 ns"),
        ("{kind: rate, link: wan1, at: 1 s, to: 7 bit/s}", "whole number of bytes"),
        ("{kind: loss, link: wan1, at: 1 s, loss: {kind: random, share: 1 %, correlation: 5 %}}",
         "correlat"),
        ("{kind: kill, node: p1, link: wan1, at: 1 s}", "link"),
        ("{kind: slow, node: p1, factor: 1.0, at: 1 s}", "above 1"),
        ("{kind: descriptors, node: p1, left: -1, at: 1 s}", "left"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_line(
    tmp_path: Path, fault: str, reason: str
) -> None:
    good = "{kind: down, link: wan1, at: 1 s, duration: 1 s}"
    path = written(tmp_path, good, fault)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert any(
        found.startswith(f"{path}:6: faults.1") and reason in found for found in caught.value.faults
    ), caught.value.faults


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("{kind: down, link: wan9, at: 1 s}", "no link 'wan9'"),
        ("{kind: pause, node: p9, at: 1 s, duration: 1 s}", "no node 'p9'"),
        ("{kind: down, link: wan1, at: 100 s}", "the run ends after 12 s"),
        ("{kind: down, link: wan1, at: 1 s, duration: 1 s, every: 3 s, times: 5}", "begin 13 s"),
        ("{kind: down, link: wan1, at: 1 s, name: first}", "another fault is called 'first'"),
        ("{kind: loss, link: wan1, loss: {kind: random, share: 1 %}, at: 1 s}", "superframes"),
        ("{kind: duplicate, link: wan1, share: 1 %, at: 1 s}", "superframes"),
        ("{kind: jitter, link: wan1, jitter: {spread: 9 ms, distribution: normal, reorder: false}, "
         "at: 3 s}", "below the mean"),
        ("{kind: kill, node: p1, at: 1 s, duration: 1 s}", "does not come back"),
        ("{kind: restart, node: p1, at: 1 s, duration: 1 s}", "takes no duration"),
        ("{kind: disconnect, node: md1, at: 2 s, duration: 1 s}", "still under first"),
        ("{kind: disconnect, node: wan1, at: 1 s}", "kind down, link wan1"),
        ("{kind: disconnect, node: tor-a, at: 1 s}", "disconnect agents only"),
        ("{kind: slow, node: tor-a, factor: 2.0, at: 1 s}", "tor-a is no agent"),
        ("{kind: stall, node: p1, at: 1 s}", "p1 does not receive KV"),
        ("{kind: slow, node: [p1, p1, p7], factor: 2.0, at: 1 s}", "no node 'p7'"),
    ],
)  # fmt: skip
def test_what_the_network_cannot_do_is_refused_with_its_line(
    tmp_path: Path, fault: str, reason: str
) -> None:
    good = "{kind: pause, node: md1, at: 1 s, duration: 2 s, name: first}"
    path = written(tmp_path, good, fault)
    with pytest.raises(PlanError) as caught:
        planned(path, lab="compose")
    assert caught.value.subject == f"{path}:6"
    assert reason in f"{caught.value.cause} {caught.value.remedy}"


@pytest.mark.parametrize(
    "fault",
    [
        "{kind: restart, node: p1, at: 1 s}",
        "{kind: kill, node: wan1, at: 1 s, duration: 1 s}",
        "{kind: pause, node: tor-a, at: 1 s, duration: 1 s}",
    ],
)
def test_what_only_containers_can_suffer_is_refused_elsewhere(tmp_path: Path, fault: str) -> None:
    path = written(tmp_path, fault)
    assert planned(path, lab="compose")
    with pytest.raises(PlanError, match="--lab compose"):
        planned(path)


def test_two_bursts_of_loss_may_follow_each_other_but_not_meet(tmp_path: Path) -> None:
    burst = (
        "{{kind: loss, link: wan1, at: {at}, duration: 1 s, loss: "
        "{{kind: gilbert-elliott, p: 1 %, r: 9 %, bad_loss: 50 %, good_loss: 0 %}}}}"
    )
    frames = ("links.wan.segmentation=frame",)
    assert load_scenario(written(tmp_path, burst.format(at="1 s")), frames)
    for second, meets in (("2 s", False), ("1999 ms", True)):
        path = written(tmp_path, burst.format(at="1 s"), burst.format(at=second))
        scenario = load_scenario(path, frames)
        network = build_network(scenario, roster(scenario), 1, "mininet")
        if meets:
            with pytest.raises(PlanError, match="two models of bursty loss"):
                plan_faults(scenario, network, 1, FULL, "mininet")
        else:
            assert len(plan_faults(scenario, network, 1, FULL, "mininet")) == 2


def test_an_agent_may_be_slow_and_stalled_but_not_slow_twice(tmp_path: Path) -> None:
    slow = "{kind: slow, node: md1, factor: 2.0, at: 1 s}"
    plan = planned(written(tmp_path, slow, "{kind: stall, node: md1, at: 1 s}"))
    assert [one.name for one in agent_faults(plan, "md1")] == ["slow-1", "stall-2"]
    assert agent_faults(plan, "p1") == ()
    with pytest.raises(PlanError, match="still under slow-1"):
        planned(written(tmp_path, slow, slow.replace("1 s", "2 s")))


@pytest.mark.parametrize("kind", KINDS, ids=kind_of)
def test_the_example_of_every_kind_can_be_planned(tmp_path: Path, kind: type[OnLinks]) -> None:
    scenario = load_scenario(
        written(tmp_path, kind.EXAMPLE),
        (
            "links.wan.segmentation=frame", "window.drain=30 s",
            *(("pool.discipline=per-transfer",) if kind_of(kind) == "ports" else ()),
        ),
    )  # fmt: skip
    network = build_network(scenario, roster(scenario), 1, "mininet")
    (fault,) = plan_faults(scenario, network, 1, FULL, "compose")
    assert fault.spans


def test_every_kind_has_a_word_and_a_sentence() -> None:
    words = [kind_of(kind) for kind in KINDS]
    assert len(set(words)) == len(words)
    assert "down" in words
    assert all(kind.__doc__ for kind in KINDS)
    assert Down().kind == "down"
