"""The plan is a pure value; what cannot be true or will not fit is refused before it exists."""

from __future__ import annotations

from typing import Literal

import pytest
from rich.console import Console

from testbed.contract.agent import Request
from testbed.contract.plan import Offered, Plan
from testbed.contract.role import Role
from testbed.contract.scale import Scale
from testbed.errors import ExitStatus, HostError, PlanError
from testbed.plan import HostFacts, RunPaths, capacity, make_plan, names_of, render, roster
from testbed.plan.derive import derived_seed
from testbed.plan.make import GUEST_START_NS
from testbed.scenario import Scenario, load_scenario

pytestmark = pytest.mark.unit

GIB = 2**30
HOST = HostFacts(cores=2, memory_free_bytes=8 * GIB, disk_free_bytes=10 * GIB)
OFFERED = Offered(
    payload_bytes=1, legs=2, leg_payload_bps=1e9, load=0.1, byte_scale=1.0, raw_load=0.1
)


def request_of(scenario: Scenario, number: int = 0, wire_bytes: int = 10**7) -> Request:
    return Request(
        id=number, at_ns=0, input_tokens=4096, hit_tokens=2048, output_tokens=2, blocks=16,
        wire_bytes=wire_bytes, prefill="p1", decode="md1",
    )  # fmt: skip


def plan(
    scenario: Scenario,
    *,
    requests: tuple[Request, ...] | None = None,
    host: HostFacts = HOST,
    lab: Literal["mininet", "compose"] = "mininet",
    clock: Literal["virtual", "real"] = "virtual",
    on: Literal["guest", "host"] = "guest",
    seed: int = 1,
) -> Plan:
    chosen = (request_of(scenario),) if requests is None else requests
    paths = RunPaths(weights="/mnt/weights/smollm2")
    return make_plan(scenario, chosen, OFFERED, seed, host, lab, clock, on, paths)


def test_equal_arguments_make_equal_plans_and_json_keeps_them() -> None:
    scenario = load_scenario("hello")
    one = plan(scenario)
    assert one == plan(load_scenario("hello"))
    assert Plan.model_validate_json(one.model_dump_json()) == one


def test_agents_share_the_runs_seed_and_know_those_of_other_roles() -> None:
    scenario = load_scenario("hello", ("topology.parameters.decode=2",))
    agents = {agent.node: agent for agent in plan(scenario, seed=7).agents}
    assert sorted(agents) == ["c1", "md1", "md2", "p1"]
    assert {agent.seed for agent in agents.values()} == {7}
    assert {peer.name for peer in agents["p1"].peers} == {"c1", "md1", "md2"}
    assert {peer.name for peer in agents["md1"].peers} == {"c1", "p1"}
    for agent in agents.values():
        for peer in agent.peers:
            assert agents[peer.name].address == peer.address
    assert agents["c1"].workload == "/mnt/run/workload.jsonl"
    assert agents["p1"].workload is None
    assert agents["p1"].events == "/mnt/run/events/p1.jsonl"
    assert agents["p1"].prompt_tokens == 4096


def test_the_barrier_leaves_a_minute_to_build() -> None:
    made = plan(load_scenario("hello"))
    assert made.guest.start_ns == GUEST_START_NS
    assert {agent.barrier_ns for agent in made.agents} == {GUEST_START_NS + 60 * 10**9}
    assert made.guest.barrier_ns == GUEST_START_NS + 60 * 10**9


def test_closed_loops_tell_clients_how_many_users() -> None:
    arrivals = "workload.arrivals={kind: closed, users: 3, requests: 9}"
    made = plan(load_scenario("hello", (arrivals,)))
    assert made.agents[0].role is Role.CLIENT
    assert made.agents[0].closed_loop == 3


def test_models_keep_their_own_sampling_unless_told() -> None:
    words = load_scenario("smollm2-answer")
    assert words.agent_model(None).sampling == "greedy"
    assert load_scenario("hello").agent_model(None).sampling == "seeded"
    assert load_scenario("hello", ("model.sampling=greedy",)).agent_model(None).sampling == "greedy"


def test_capacity_counts_frames_as_netem_does() -> None:
    wan = capacity(load_scenario("pool-wide-skewed"))
    assert wan.legs == 2
    assert wan.leg_payload_bps == pytest.approx(10e9 * 8948 / 9014)
    rack = capacity(load_scenario("rdma-1gib"))
    assert rack.legs == 1
    assert rack.leg_payload_bps == pytest.approx(400e9 * 8948 / 9014)


def test_seeds_of_purposes_do_not_collide_or_move() -> None:
    assert derived_seed(1, "link", "wan1", "forward") != derived_seed(1, "link", "wan1", "backward")
    assert derived_seed(1, "ab", "c") != derived_seed(1, "a", "bc")
    assert 0 < derived_seed(2**63 - 1, "x") < 2**63


def test_a_virtual_clock_on_the_host_is_refused() -> None:
    with pytest.raises(PlanError, match="cannot be virtual") as caught:
        plan(load_scenario("hello"), on="host")
    assert caught.value.exit_status is ExitStatus.USAGE


def test_400_gigabits_under_a_real_clock_are_refused_until_scaled_down() -> None:
    with pytest.raises(PlanError, match="client, fabric are faster than 20 Gbit/s") as caught:
        plan(load_scenario("hello"), clock="real")
    assert "--set real_time.slow=20, or" in caught.value.remedy
    hello, paths = load_scenario("hello"), RunPaths(weights=None)
    slow = make_plan(
        hello, (request_of(hello),), OFFERED, 1, HOST, "mininet", "real", "guest", paths,
        scale=Scale(slow=20.0),
    )  # fmt: skip
    assert max(link.forward.rate_bps for link in slow.network.links) == 20_000_000_000


def test_containers_take_more_memory_and_time_and_wider_subnets() -> None:
    scenario = load_scenario("hello")
    small, large = plan(scenario), plan(scenario, lab="compose")
    assert large.estimate.guest_memory_bytes > small.estimate.guest_memory_bytes
    assert large.estimate.wall_s > small.estimate.wall_s
    assert {
        interface.address.rpartition("/")[2]
        for node in large.network.nodes
        for interface in node.interfaces
        if interface.address
    } == {"29"}


def test_what_cannot_be_is_said_before_what_is_not_built() -> None:
    with pytest.raises(PlanError, match="cannot be virtual"):
        plan(load_scenario("hello"), lab="compose", on="host")
    with pytest.raises(PlanError, match="faster than 20"):
        plan(load_scenario("hello"), lab="compose", clock="real")


def test_bounds_on_links_that_the_plan_lacks_are_refused_with_the_links_it_has() -> None:
    bound = "expect.metrics.link.{}.drops=== 0"
    assert plan(load_scenario("hello", (bound.format("wan2"), bound.format("p1"))))
    for settings in ((bound.format("wan9"),),
                     (bound.format("wan2"), "topology.parameters.legs=1")):  # fmt: skip
        with pytest.raises(PlanError, match=r"the network has no link 'wan[29]'") as caught:
            plan(load_scenario("hello", settings))
        assert "links of this plan: c1, md1, p1, wan1" in caught.value.remedy
        assert caught.value.exit_status is ExitStatus.USAGE


def test_an_rld_has_hits_to_bound_where_it_has_a_cache() -> None:
    bound = "expect.metrics.serving.instances.r1.hit=< 100 %"
    with pytest.raises(PlanError, match="the network has no instance 'r1'") as caught:
        plan(load_scenario("pdd-hello", (bound,)))
    assert "r1" not in caught.value.remedy
    assert plan(load_scenario("pdd-hello", (bound, "serving.caches.relay=1 GiB")))


def test_what_does_not_fit_is_refused_as_this_machines_fault() -> None:
    scenario = load_scenario("pool-wide-skewed")
    small = HostFacts(cores=2, memory_free_bytes=GIB // 2, disk_free_bytes=10 * GIB)
    with pytest.raises(HostError, match=r"MiB of memory \(.*\), 512 MiB are free") as caught:
        plan(scenario, host=small)
    assert caught.value.exit_status is ExitStatus.UNABLE
    full = HostFacts(cores=2, memory_free_bytes=8 * GIB, disk_free_bytes=2**20)
    with pytest.raises(HostError, match="of disk space, 1 MiB are free"):
        plan(scenario, host=full)


@pytest.mark.parametrize(
    ("setting", "blamed", "remedy"),
    [
        (
            "links.wan.rtt=10 h",
            "links of class wan: 10 Gbit/s x 18000 s each way",
            "rtt or buffer of links.wan",
        ),
        (
            "links.fabric.rtt=10 min",
            "links of class fabric: 400 Gbit/s x 300 s",
            "rtt or buffer of links.fabric",
        ),
        ("topology.parameters.decode=64", "65 links of class fabric", "the topology's parameters"),
        ("model.name=smollm2-135m;pool.size=4096", "KV of 4096 open requests", "pool.size"),
    ],
)
def test_what_takes_most_memory_is_named(setting: str, blamed: str, remedy: str) -> None:
    none = HostFacts(cores=2, memory_free_bytes=0, disk_free_bytes=10 * GIB)
    with pytest.raises(HostError) as caught:
        plan(load_scenario("hello", tuple(setting.split(";"))), host=none)
    assert blamed in caught.value.cause
    assert remedy in caught.value.remedy


def test_estimates_grow_with_what_is_asked() -> None:
    scenario = load_scenario("hello")
    one = plan(scenario).estimate
    heavy = plan(scenario, requests=(request_of(scenario, wire_bytes=10**11),)).estimate
    assert heavy.payload_bytes == 10**11
    assert heavy.wall_s - one.wall_s == pytest.approx(100, rel=0.01)
    many = plan(load_scenario("hello", ("topology.parameters.decode=30",))).estimate
    assert many.host_memory_bytes > one.host_memory_bytes
    assert many.guest_memory_bytes >= many.host_memory_bytes - 300 * 2**20


def test_requests_that_cannot_be_served_are_refused() -> None:
    scenario = load_scenario("hello")
    with pytest.raises(PlanError, match="no requests"):
        plan(scenario, requests=())
    stray = request_of(scenario).model_copy(update={"decode": "md9"})
    with pytest.raises(PlanError, match="'md9', which the topology does not have"):
        plan(scenario, requests=(stray,))
    thin = request_of(scenario, wire_bytes=1_000)
    with pytest.raises(PlanError, match="16 blocks of real KV are 16384 bytes"):
        plan(scenario, requests=(thin,))


def test_a_rendered_plan_shows_links_agents_and_the_estimate() -> None:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(render(plan(load_scenario("hello"))))
    text = captured.get()
    for part in ("hello, seed 1", "wan2", "RTT 20 ms", "10.2.1.2", "wall time", "host memory"):
        assert part in text


def test_an_authors_brackets_are_no_markup() -> None:
    texts = ("[red]bold[/red] [/x]", "pool [small] a", "ends in \\\\", "[link=x]y")
    for text in texts:
        scenario = load_scenario("hello", (f'description="{text}"', f'assumptions=["{text}"]'))
        console = Console(width=200)
        with console.capture() as captured:
            console.print(render(plan(scenario)))
        assert captured.get().count(text.replace("\\\\", "\\")) == 2


def test_roster_names_are_numbered_by_role() -> None:
    members = roster(load_scenario("hello", ("topology.parameters.prefill=3",)))
    assert names_of(members, Role.PREFILL) == ("p1", "p2", "p3")
    assert names_of(members, Role.RELAY) == ()


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        (("topology.parameters.relay=1",), "relay"),
        (("topology.parameters.router=1",), "router"),
        (("serving={pipeline: {kind: direct}}",), "router"),
        (
            ("topology.parameters.router=1", "serving={pipeline: {kind: relay-only}}"),
            "relay",
        ),
    ],
)
def test_a_serving_plane_and_its_agents_come_together(
    settings: tuple[str, ...], parameter: str
) -> None:
    with pytest.raises(PlanError, match=rf"topology\.parameters\.{parameter}"):
        plan(load_scenario("hello", settings))


def test_the_router_knows_the_batch_of_each_instances_own_hardware() -> None:
    settings = ("serving.hardware.decode=chip-a", "serving.hardware.relay=h100-rld")
    serving = plan(load_scenario("pdd-hello", settings)).agents[0].serving
    assert serving is not None
    assert dict(serving.most_sequences) == {"r1": 64, "md1": 25, "md2": 25}
