"""Faults that agents apply themselves: what authors may write, and what the plan refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.ailment import DropConnection, Jump, Leave, Shrink, SkipChunk
from testbed.contract.fault import AgentFault, Span
from testbed.contract.scale import FULL
from testbed.errors import PlanError, ScenarioError
from testbed.plan.ailments import pairs
from testbed.plan.faults import plan_faults
from testbed.plan.network import build_network
from testbed.plan.roster import roster
from testbed.scenario import load_scenario

pytestmark = pytest.mark.unit
S = 10**9


def written(folder: Path, *faults: str, base: str = "hello") -> str:
    """A scenario with these faults; the first one is on line 5."""
    path = folder / "faults.yaml"
    lines = "\n".join(f"  - {fault}" for fault in faults)
    path.write_text(f'extends: {base}\nname: some-faults\ndescription: "test"\nfaults:\n{lines}\n')
    return str(path)


def planned(path: str, *settings: str, seed: int = 1) -> tuple[AgentFault, ...]:
    scenario = load_scenario(path, settings)
    network = build_network(scenario, roster(scenario), seed, "mininet")
    faults = plan_faults(scenario, network, seed, FULL, "mininet")
    return tuple(fault for fault in faults if isinstance(fault, AgentFault))


def test_the_sender_of_a_pair_applies_its_fault(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "{kind: shrink, pair: [p1, md1], lose: 3, at: 1 s, duration: 1 s}",
        "{kind: skip-chunk, pair: [p1, md1], chunk: 2, at: 1 s}",
        "{kind: skip-chunk, pair: [p2, md1], at: 1 s}",
    )
    shrink, second, last = planned(path, "topology.parameters.prefill=2")
    assert (shrink.nodes, shrink.effect) == (("p1",), Shrink(peer="md1", lose=3))
    assert second.effect == SkipChunk(peer="md1", chunk=1)
    assert (last.nodes, last.effect) == (("p2",), SkipChunk(peer="md1"))


def test_what_is_over_at_once_may_come_back(tmp_path: Path) -> None:
    drop = "{kind: drop-connection, pair: [p1, md1], connection: 2, how: reset, at: 1 s"
    (one,) = planned(written(tmp_path, drop + ", every: 1 s, times: 2}"))
    assert one.spans == tuple(Span(begin_ns=n * S, end_ns=n * S + 1) for n in (1, 2))
    assert one.effect == DropConnection(peer="md1", connection=2, clean=False)


def test_a_clock_is_ahead_or_behind(tmp_path: Path) -> None:
    (ahead,) = planned(written(tmp_path, "{kind: clock, node: md1, ahead: 1 h, at: 1 s}"))
    (behind,) = planned(written(tmp_path, "{kind: clock, node: md1, behind: 1 s, at: 1 s}"))
    assert (ahead.effect, behind.effect) == (Jump(offset_ns=3_600 * S), Jump(offset_ns=-S))


def test_who_leaves_is_drawn_from_the_seed(tmp_path: Path) -> None:
    path = written(
        tmp_path, "{kind: leave, node: c1, how: unclean, share: 25 %, tokens: 2, at: 0 s}"
    )
    first, again, other = (planned(path, seed=seed)[0].effect for seed in (1, 1, 2))
    assert isinstance(first, Leave)
    assert first == again != other
    assert (first.share, first.tokens, first.after_ns) == (0.25, 2, None)


def test_pairs_are_those_that_carry_kv(tmp_path: Path) -> None:
    path = written(tmp_path, "{kind: slow, node: p1, factor: 2.0, at: 1 s}", base="pdd-hello")

    def listed(*settings: str) -> set[tuple[str, str]]:
        scenario = load_scenario(path, settings)
        return {*pairs(scenario, build_network(scenario, roster(scenario), 1, "mininet"))}

    always = {(p, to) for p in ("p1", "p2") for to in ("md1", "md2", "r1")}
    assert listed() == always
    assert listed("serving.handoff.mode=incremental-kv") == {*always, ("r1", "md1"), ("r1", "md2")}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("{kind: shrink, pair: [p1], lose: 3, at: 1 s}", "pair"),
        ("{kind: shrink, node: p1, lose: 3, at: 1 s}", "node"),
        ("{kind: leak, pair: [p1, md1], each: 0, at: 1 s}", "each"),
        ("{kind: skip-chunk, pair: [p1, md1], chunk: 0, at: 1 s}", "chunk"),
        ("{kind: clock, node: md1, at: 1 s}", "ahead or behind"),
        ("{kind: clock, node: md1, ahead: 1 s, behind: 1 s, at: 1 s}", "ahead or behind"),
        ("{kind: silence, node: md1, delay: 0 s, at: 1 s}", "longer than 0 ns"),
        ("{kind: leave, node: c1, how: unclean, at: 1 s}", "after or tokens"),
        ("{kind: leave, node: c1, how: unclean, after: 1 s, tokens: 2, at: 1 s}", "or tokens"),
        ("{kind: leave, node: c1, how: rude, after: 1 s, at: 1 s}", "how"),
        ("{kind: leave, node: c1, how: clean, after: 1 s, share: 0 %, at: 1 s}", "above 0 %"),
        ("{kind: leave, node: c1, how: clean, after: 1 s, share: 5 %, requests: [1], at: 1 s}",
         "not both"),
        ("{kind: drop-connection, pair: [p1, md1], connection: 1, how: reset, at: 1 s, "
         "duration: 1 s}", "over at once"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_line(
    tmp_path: Path, fault: str, reason: str
) -> None:
    path = written(tmp_path, "{kind: stall, node: md1, at: 1 s}", fault)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert any(
        found.startswith(f"{path}:6: faults.1") and reason in found for found in caught.value.faults
    ), caught.value.faults


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("{kind: shrink, pair: [md1, p1], lose: 3, at: 1 s}", "pairs: [p1, md1]"),
        ("{kind: shrink, pair: [p1, p9], lose: 3, at: 1 s}", "sends no KV to p9"),
        ("{kind: shrink, pair: [p1, md1], lose: 9, at: 1 s}", "at most 8"),
        ("{kind: ports, pair: [p1, md1], left: 3, at: 1 s}", "keeps its source ports"),
        ("{kind: drop-connection, pair: [p1, md1], connection: 8, how: clean, at: 1 s}", "0 to 7"),
        ("{kind: backlog, node: p1, length: 1, at: 1 s}", "does not receive KV"),
        ("{kind: leave, node: p1, how: unclean, after: 1 s, at: 1 s}", "use one of c1"),
        ("{kind: leave, node: c1, how: clean, after: 1 s, at: 1 s}", "without a router"),
        ("{kind: leak, pair: [p1, md1], each: 2, at: 2 s}", "still under first"),
    ],
)
def test_what_an_agent_cannot_suffer_is_refused_with_its_line(
    tmp_path: Path, fault: str, reason: str
) -> None:
    first = "{kind: leak, pair: [p1, md1], each: 3, at: 1 s, name: first}"
    path = written(tmp_path, first, fault)
    with pytest.raises(PlanError) as caught:
        planned(path)
    assert caught.value.subject == f"{path}:6"
    assert reason in f"{caught.value.cause} {caught.value.remedy}"


def test_two_pairs_may_leak_at_once(tmp_path: Path) -> None:
    leak = "{kind: leak, pair: [p1, md1], each: 3, at: 1 s}"
    assert len(planned(written(tmp_path, leak, leak.replace("p1", "p2")),
                       "topology.parameters.prefill=2")) == 2  # fmt: skip


def test_a_pool_that_opens_on_demand_may_run_out_of_ports_but_not_of_a_size(
    tmp_path: Path,
) -> None:
    ports = written(tmp_path, "{kind: ports, pair: [p1, md1], left: 3, at: 1 s}")
    bare = "{kind: shrink, pair: [p1, md1], lose: 3, at: 1 s}"
    setting = "pool={discipline: per-transfer}"
    assert planned(ports, setting)
    with pytest.raises(PlanError, match="no size"):
        planned(written(tmp_path, bare), setting)
