"""Routing: the pipeline policies, the instance policies, and whole decisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from testbed.contract.role import Role
from testbed.contract.router import (
    Direct,
    HitThreshold,
    LengthThreshold,
    LongestPrefix,
    Prfaas,
    PrfaasPdd,
    RandomInstance,
    RelayOnly,
    RouterConfig,
    SessionSticky,
    WanTime,
)
from testbed.errors import AgentError
from testbed_agents.router import (
    ClusterView,
    Decider,
    InstanceView,
    LegView,
    Pipeline,
    PoolView,
    RequestFacts,
)
from testbed_agents.router.instance import instance_policy
from testbed_agents.router.length import adjusted
from testbed_agents.router.reach import Reach
from testbed_agents.router.wan import predict_wan_ns

REQUEST = RequestFacts(req=0, input_tokens=65_536, block_tokens=128, block_bytes=643_968)
FULL = 512


def instance(name: str, hit: int = 0, site: str = "a", **state: int) -> InstanceView:
    role = {"p": Role.PREFILL, "r": Role.RELAY, "m": Role.DECODE}[name[0]]
    return replace(InstanceView(name, role, site, hit_blocks=hit), **state)


def view(
    md: InstanceView, relay: InstanceView | None = None, used: float = 0.0, busy: int = 0,
    waiting: int = 0, now_ns: int = 0,
) -> ClusterView:  # fmt: skip
    """One far P (p1), one P beside MD (p2)."""
    return ClusterView(
        now_ns, (instance("p1"), instance("p2", site="b")),
        () if relay is None else (relay,), (md,),
        {("p1", md.name): PoolView("wan", busy, waiting, 64),
         ("p2", md.name): PoolView("lan", 0, 0, 64)},
        {"wan": LegView(20_000_000_000, used, busy, 10_000_000),
         "lan": LegView(400_000_000_000)},
    )  # fmt: skip


def far_only(seen: ClusterView) -> ClusterView:
    return replace(seen, prefills=seen.prefills[:1])


RELAY = instance("r1", most_sequences=8)


@pytest.mark.parametrize(
    ("hit", "pipeline"),
    [(0, Pipeline.P_RLD_MD), (409, Pipeline.P_RLD_MD), (410, Pipeline.P_MD), (512, Pipeline.P_MD)],
)
def test_the_hit_threshold_divides_the_requests(hit: int, pipeline: Pipeline) -> None:
    decider = Decider(RouterConfig(pipeline=HitThreshold(threshold=0.8)))
    route = decider.decide(REQUEST, far_only(view(instance("m1", hit, "b"), RELAY)))
    assert route.choice.pipeline is pipeline
    assert route.relay == ("r1" if pipeline is Pipeline.P_RLD_MD else None)
    assert route.decode == "m1"
    assert "H 0.8000" in route.choice.detail


@pytest.mark.parametrize("rule", [HitThreshold(threshold=1.0), WanTime(bound_ns=1), RelayOnly()])
@pytest.mark.parametrize(
    ("relay", "reason"),
    [
        (None, "relay-missing"),
        (instance("r1", most_sequences=2, active_sequences=2, begun_sequences=2), "relay-full"),
    ],
)
def test_without_room_at_relay_the_request_goes_direct(
    rule: HitThreshold | WanTime | RelayOnly, relay: InstanceView | None, reason: str
) -> None:
    route = Decider(RouterConfig(pipeline=rule)).decide(
        REQUEST, far_only(view(instance("m1", 0, "b"), relay))
    )
    assert route.choice.pipeline is Pipeline.P_MD
    assert route.choice.reason == reason
    assert (route.relay, route.decode) == (None, "m1")


def test_the_ablation_ends_at_relay_and_the_baseline_never_sees_it() -> None:
    seen = far_only(view(instance("m1", 0, "b"), RELAY))
    alone = Decider(RouterConfig(pipeline=RelayOnly())).decide(REQUEST, seen)
    assert (alone.choice.pipeline, alone.relay, alone.decode) == (Pipeline.P_RLD, "r1", None)
    direct = Decider(RouterConfig(pipeline=Direct())).decide(REQUEST, seen)
    assert (direct.choice.pipeline, direct.relay, direct.decode) == (Pipeline.P_MD, None, "m1")


def test_wan_time_is_bytes_over_rate_and_round_trip_and_queue() -> None:
    md = instance("m1", FULL - 100, "b")
    seen = view(md, RELAY)
    own = predict_wan_ns(REQUEST, seen.prefills[0], md, seen)
    assert own == 64_396_800 * 8 // 20 + 10_000_000
    busy = view(md, RELAY, used=1.0, busy=64, waiting=127)
    shared = 64_396_800 * 8 * 65 // 20 + 10_000_000
    assert predict_wan_ns(REQUEST, seen.prefills[0], md, busy) == shared * 3
    half_used = view(md, RELAY, used=0.5, busy=4)
    assert predict_wan_ns(REQUEST, seen.prefills[0], md, half_used) == 2 * own - 10_000_000
    full = replace(md, hit_blocks=FULL)
    assert predict_wan_ns(REQUEST, seen.prefills[0], full, view(full)) == 0


@given(st.integers(0, FULL), st.floats(0, 1.5), st.integers(0, 64), st.integers(0, 500))
def test_a_busier_line_or_a_longer_queue_is_never_predicted_faster(
    hit: int, used: float, busy: int, waiting: int
) -> None:
    md = instance("m1", hit, "b")
    idle, loaded = view(md), view(md, used=used, busy=busy, waiting=waiting)
    p1 = idle.prefills[0]
    assert predict_wan_ns(REQUEST, p1, md, loaded) >= predict_wan_ns(REQUEST, p1, md, idle)


def test_a_pair_without_a_pool_has_no_wan_time() -> None:
    with pytest.raises(AgentError, match="no pool over a known leg"):
        predict_wan_ns(REQUEST, instance("p9"), instance("m1"), view(instance("m1")))


def test_prfaas_sends_long_prompts_far_and_short_ones_near() -> None:
    decider = Decider(RouterConfig(pipeline=Prfaas()))
    seen = view(instance("m1", 0, "b"), RELAY)
    far = decider.decide(REQUEST, seen)
    near = decider.decide(replace(REQUEST, input_tokens=19_400), seen)
    assert (far.prefill, far.reach) == ("p1", Reach.FAR)
    assert (near.prefill, near.reach, near.choice.reason) == ("p2", Reach.NEAR, "prefilled-near")
    assert {far.choice.pipeline, near.choice.pipeline} == {Pipeline.P_MD}


def test_a_prefix_that_is_cached_near_counts_as_short() -> None:
    seen = view(instance("m1", 0, "b"), RELAY)
    cached = replace(seen, prefills=(seen.prefills[0], instance("p2", 500, "b")))
    assert Decider(RouterConfig(pipeline=Prfaas())).decide(REQUEST, cached).prefill == "p2"


def test_the_combination_relays_what_prfaas_sends_far() -> None:
    rule = PrfaasPdd(pipeline=HitThreshold(threshold=0.5))
    decider = Decider(RouterConfig(pipeline=rule))
    seen = view(instance("m1", 0, "b"), RELAY)
    assert decider.decide(REQUEST, seen).choice.pipeline is Pipeline.P_RLD_MD
    short = decider.decide(replace(REQUEST, input_tokens=1000), seen)
    assert (short.choice.pipeline, short.prefill) == (Pipeline.P_MD, "p2")


def test_the_threshold_follows_the_measured_egress_once_an_interval() -> None:
    schedule = LengthThreshold(threshold_tokens=70_000, interval_ns=100, gain=0.1)
    decider = Decider(RouterConfig(pipeline=Prfaas(schedule=schedule)))
    md = instance("m1", 0, "b")
    prefills = [
        decider.decide(REQUEST, view(md, used=used, now_ns=now)).prefill
        for now, used in [(0, 0.0), (50, 0.0), (100, 0.1), (150, 1.0), (200, 0.95), (300, 0.8)]
    ]
    assert prefills == ["p2", "p2", "p1", "p1", "p2", "p2"]


@given(st.integers(1_024, 1_048_576), st.floats(0, 2), st.floats(0, 2))
def test_more_egress_never_lowers_the_threshold(tokens: int, one: float, other: float) -> None:
    rule = LengthThreshold()
    low, high = sorted((one, other))
    assert adjusted(rule, tokens, low) <= adjusted(rule, tokens, high)
    assert rule.lowest_tokens <= adjusted(rule, tokens, one) <= rule.highest_tokens


MDS = [instance(f"m{number:02}") for number in range(16)]


def test_random_choice_repeats_with_its_seed_and_reaches_all() -> None:
    policy = instance_policy(RandomInstance(seed=1))
    names = [policy.choose(replace(REQUEST, req=i), MDS).instance.name for i in range(400)]
    again = [policy.choose(replace(REQUEST, req=i), MDS[::-1]).instance.name for i in range(400)]
    other = instance_policy(RandomInstance(seed=2))
    assert names == again
    assert set(Counter(names)) == {one.name for one in MDS}
    assert names != [other.choose(replace(REQUEST, req=i), MDS).instance.name for i in range(400)]


def test_idle_instances_take_turns() -> None:
    policy = instance_policy(LongestPrefix())
    names = [policy.choose(replace(REQUEST, req=i), MDS).instance.name for i in range(16)]
    assert sorted(names) == [one.name for one in MDS]


def test_a_session_stays_and_only_the_sessions_of_a_lost_instance_move() -> None:
    policy = instance_policy(SessionSticky())

    def homes(among: list[InstanceView]) -> dict[int, str]:
        return {
            s: policy.choose(replace(REQUEST, req=s, session=s), among).instance.name
            for s in range(200)
        }

    before, after = homes(MDS), homes(MDS[1:])
    assert {s for s in before if before[s] != after[s]} == {
        s for s, home in before.items() if home == "m00"
    }
    assert policy.choose(REQUEST, MDS).reason == "no-session"


def test_the_longest_prefix_wins_until_it_is_overloaded() -> None:
    policy = instance_policy(LongestPrefix(load_cap=1.25, slack_sequences=4))
    best, second = instance("m01", 90), instance("m02", 50)
    others = [instance(f"m1{n}") for n in range(8)]
    assert policy.choose(REQUEST, [best, second, *others]).instance.name == "m01"
    pressed = replace(best, active_sequences=40)
    choice = policy.choose(REQUEST, [pressed, second, *others])
    assert (choice.instance.name, choice.reason) == ("m02", "load-cap")


@given(
    st.lists(
        st.tuples(st.integers(0, 1000), st.integers(0, 512), st.integers(0, 8)),
        min_size=1, max_size=16,
    ),
    st.sampled_from([LongestPrefix(load_cap=1, slack_sequences=0), LongestPrefix()]),
    st.integers(0, 99),
)  # fmt: skip
def test_the_order_of_the_picture_does_not_matter_and_a_full_one_is_last_resort(
    states: list[tuple[int, int, int]], rule: LongestPrefix, req: int
) -> None:
    among = [
        instance(
            f"m{n:02}", hit, active_sequences=active, begun_sequences=active, most_sequences=limit
        )
        for n, (active, hit, limit) in enumerate(states)
    ]
    request = replace(REQUEST, req=req)
    policy = instance_policy(rule)
    chosen = policy.choose(request, among).instance
    assert policy.choose(request, among[::-1]).instance == chosen
    assert not chosen.full or all(one.full for one in among)


def test_routing_needs_an_instance_and_a_path() -> None:
    decider = Decider(RouterConfig(pipeline=Direct()))
    with pytest.raises(AgentError, match="no prefill instance"):
        decider.decide(REQUEST, replace(view(instance("m1")), pools={}))
    with pytest.raises(AgentError, match="no instance"):
        instance_policy(LongestPrefix()).choose(REQUEST, [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"pipeline": {"kind": "hit-threshold", "threshold": 1.01}},
        {"pipeline": {"kind": "hit-threshold", "threshold": float("nan")}},
        {"pipeline": {"kind": "wan-time", "bound_ns": 0}},
        {"pipeline": {"kind": "prfaas", "schedule": {"low": 0.9, "high": 0.9}}},
        {"pipeline": {"kind": "prfaas-pdd", "pipeline": {"kind": "direct"}}},
        {"pipeline": {"kind": "nearest"}},
        {"pipeline": {"kind": "direct"}, "decode": {"kind": "longest-prefix", "load_cap": 0.5}},
    ],
)
def test_a_configuration_out_of_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RouterConfig.model_validate(wrong)
