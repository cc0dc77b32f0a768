"""Loading scenarios: the shipped ones load, and every fault of a bad one is said at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.contract.link import GilbertElliott, LinkSpec, RandomLoss
from testbed.errors import ScenarioError
from testbed.scenario import load_profile, load_scenario, load_topology
from testbed.scenario.alone import profile_alone, topology_alone
from testbed.scenario.data import DataKind, folder, names
from testbed.scenario.linkspec import compose
from testbed.scenario.profile import LinkChoice

pytestmark = pytest.mark.unit

BAD = """\
name: bad
description: "wrong in many ways"
topology: {name: two-dcc}
links:
  wan: {profile: wan-10, rtt: 20}
  fabric: {correlation: 25 %}
  client: {limit: 1000}
window: {measure: 2 s, drain: 10 sec, mesure: 3 s}
workload:
  arrivals: {kind: evenly, every: 250 ms}
  input: {kind: fixed, tokens: 4096}
  hit: {kind: uniform, low: 50 %, high: 190 %}
  output: {kind: fixed}
shape: {kv: deepseek-v4-prox, hardware: demo-cp}
model: {name: nanoo}
"""


HELLO = f"{folder(DataKind.SCENARIOS)}/hello.yaml:"


def faults_of(name: str, *settings: str) -> tuple[str, ...]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(name, settings)
    return caught.value.faults


@pytest.mark.parametrize("name", names(DataKind.SCENARIOS))
def test_every_shipped_scenario_loads_and_its_resolved_form_is_the_same(
    name: str, tmp_path: Path
) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    resolved = tmp_path / "scenario.yaml"
    resolved.write_text(scenario.resolved_yaml())
    again = load_scenario(str(resolved))
    assert again.file == scenario.file
    assert again.links == scenario.links


@pytest.mark.parametrize("name", names(DataKind.TC_PROFILES))
def test_every_shipped_profile_is_a_possible_link(name: str) -> None:
    spec = compose(load_profile(name), LinkChoice())
    assert isinstance(spec, LinkSpec)
    assert spec.delay_ns >= 1_000


@pytest.mark.parametrize("name", names(DataKind.TOPOLOGIES))
def test_every_shipped_topology_loads(name: str) -> None:
    assert load_topology(name).name == name


def test_every_fault_is_said_at_once_with_file_line_and_key(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    faults = faults_of(str(path))
    wanted = {
        3: "topology.name: unknown name 'two-dcc'; did you mean 'two-dc'? known: many-to-one",
        5: "links.wan.rtt: 20 has no unit",
        6: "links.fabric.correlation: correlated",
        7: "links.client.limit: is not a setting",
        8: "window.mesure: unknown key; did you mean 'measure'?",
        10: "workload.arrivals: unknown kind 'evenly'",
        11: "workload.input.tokens: 4096 has no unit",
        12: "workload.hit.high: '190 %' is too large",
        13: "workload.output.tokens: is missing",
        14: "shape.kv: unknown name 'deepseek-v4-prox'; did you mean 'deepseek-v4-pro'?",
        15: "model.name: Input should be 'nano' or 'smollm2-135m'",
    }
    for line, text in wanted.items():
        assert any(fault.startswith(f"{path}:{line}: {text}") for fault in faults), text
    text = "\n".join(faults)
    assert "links.wan.profile: unknown name 'wan-10'; did you mean 'wan-10g'?" in text
    assert "window.drain: '10 sec' has the unknown unit 'sec'" in text
    assert "shape.hardware: unknown name 'demo-cp'" in text
    assert [int(fault.split(":")[1]) for fault in faults] == sorted(
        int(fault.split(":")[1]) for fault in faults
    )


def test_wrong_keys_do_not_hide_impossible_links() -> None:
    faults = faults_of("hello", "windows=3", "links.fabric.rtt=1 us")
    assert any("did you mean 'window'?" in fault for fault in faults)
    assert any("at least 1 us each way" in fault for fault in faults)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (("links.client.jitter={spread: 3 ms, distribution: normal, reorder: false}",), "exceeds"),
        (("links.wan.stages=single",), "so no buffer can be honoured"),
        (
            (
                "links.wan.stages=single",
                "links.wan.jitter={spread: 1 ms, distribution: normal, reorder: false}",
            ),
            "running maximum",
        ),
        (("links.wan.loss={kind: random, share: 1 %}",), "set segmentation: frame"),
        (("links.wan.duplicate=1 %",), "set segmentation: frame"),
        (("links.wan.corrupt=1 %",), "set segmentation: frame"),
        (("links.wan.buffer=1000000 bdp",), "'1000000 bdp' is too large; use at most"),
        (("links.wan.buffer=0.1234 bdp",), "is too fine"),
        (("links.wan.rtt=",), "has no value"),
        (("links.wan.jitter=nonne",), "must be a mapping of keys to values, or none"),
        (("links.wan.loss=5",), "must be a mapping of keys to values, or none"),
        (('seed=!!int "5"',), "the tag 'tag:yaml.org,2002:int' is not allowed"),
        (("expect.violations=[no-such]",), "known: agents-stopped"),
        (("expect.violations=[tokens-equal]",), "did you mean 'tokens-equal-reference'?"),
        (("links.wan.buffer=64 KiB",), "hold fewer than 2 packets"),
        (("links.wan.rtt=1 us",), "at least 1 us each way"),
        (("links.wan.rate=0 Gbit/s",), "has a rate"),
        (("links.wan.mtu=100 B",), "576 to 65535"),
        (("links.wan.ecn=true",), "there is no loss"),
        (("links.wam.rtt=1 ms",), "did you mean 'wan'?"),
        (("topology.parameters.prefil=3",), "did you mean 'prefill'?"),
        (("topology.parameters.prefill=300",), "outside 1 to 64"),
        (("shape.block=100 tokens",), "not a whole number of real tokens"),
        (("shape.ratio=1", "shape.block=16 tokens", "shape.kv=deepseek-v4-flash",
          "shape.precision=fp8", "model.name=smollm2-135m"), "substance does not fit"),
        (("workload.input.tokens=4097 tokens",), "whole number of blocks"),
        (("shape.precision=fp7",), "did you mean 'fp8'?"),
        (("pool.source_port=60996",), "pass 60999"),
        (("pool.source_port=32765",), "hands out itself"),
        (("pool.size=5000",), "less than or equal to 4096"),
        (("tcp.low_water=20 MiB",), "might never wake"),
        (("window.measure=0 s",), "longer than 0 ns"),
        (("workload.hit={kind: uniform, low: 90 %, high: 80 %}",), "low <= high"),
        (("workload.hit={kind: beta, alpha: 1.0, beta: 1.0, low: 0 %, high: 100 %, mean: 90 %}",),
         "parameters give 50.00 %"),
        (("workload.arrivals={kind: trace, file: none.jsonl}",), "does not exist"),
        (("workload.input={kind: trace, high: 1000 tokens}",), "arrivals have no trace"),
        (("workload.arrivals={kind: closed, users: 2, requests: 5}", "workload.offered_load=90 %"),
         "needs an open loop"),
        (("expect.metrics.ttft.p98_s=< 1 s",), "did you mean 'ttft.p99_s'?"),
        (("expect.metrics.ttft.p99_s=< 1 MiB",), "unknown unit"),
        (("expect.metrics.ttft.p99_s=about 1 s",), "is no bound"),
        (("model.seed=1.5",), "valid integer"),
        (("model.name=nano", "model.seed=-1"), "greater than or equal to 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(settings: tuple[str, ...], reason: str) -> None:
    faults = faults_of("hello", *settings)
    assert any(reason in fault for fault in faults), faults
    assert all(fault.startswith(("--set ", HELLO)) for fault in faults)


@pytest.mark.parametrize(
    ("setting", "count"),
    [
        ("links.wan.jitter={spread: 15 ms}", 2),
        ("links.wan.jitter=nonne", 1),
        ("links.wan.loss={kind: random, share: 1 %, correlation: 25 %}", 1),
        ("links.wan.loss={kind: foo}", 1),
        ("links.wan.loss={share: 1 %}", 1),
        ("links.wan.slot={low: 1, high: 2 ms}", 1),
    ],
)
def test_a_fault_of_an_impairment_is_not_followed_by_the_other_half_of_the_union(
    setting: str, count: int
) -> None:
    faults = faults_of("hello", "links.wan.segmentation=frame", setting)
    assert len(faults) == count, faults
    assert not any("Input should be 'none'" in fault for fault in faults)


LONG = "7" * 100_000


@pytest.mark.parametrize(
    "setting",
    [
        f"seed={LONG}",
        f"seed=[{LONG}]",
        f"pool.size={LONG}",
        f"links.wan.rtt={LONG}",
        f"links.wan.rtt={LONG} ms",
        f"links.wan.rtt=1.{LONG} ms",
        "links.wan.rtt=1 " + "m" * 100_000,
        f"links.wan.buffer={LONG} bdp",
        f"links.wan.buffer=1.{LONG} bdp",
        f"links.wan.profile={LONG}",
        f"links.wan.loss={{kind: k{LONG}}}",
        f"links.wan.jitter=!t{LONG} 1",
        f"links.k{LONG}=1",
        f"topology.name=t{LONG}",
        f"topology.parameters.decode={LONG}",
        f"shape.kv=k{LONG}",
        f"model.name=m{LONG}",
        f"expect.violations=[v{LONG}]",
        f"expect.metrics.m{LONG}=< 1 s",
        f"expect.metrics.ttft.p99_s=< {LONG}",
        f"workload.arrivals={{kind: trace, file: {LONG}}}",
        f"workload.arrivals={{kind: trace, file: {LONG[:1_900]}}}",
        f"key{LONG}=1",
        f"{LONG}",
        f"a=*{LONG}",
        f"a=%{LONG}",
        f"a='{LONG}",
    ],
)
def test_what_the_author_wrote_is_echoed_short(setting: str) -> None:
    for fault in faults_of("hello", setting):
        assert len(max(re.findall(r"\w+", fault), key=len)) <= 80, fault[:300]
        assert len(fault) < 2_500


def test_a_trace_whose_name_no_file_can_have_does_not_exist() -> None:
    for name in (r"a\0b", "n" * 1_900):
        arrivals = f'workload.arrivals={{kind: trace, file: "{name}"}}'
        assert any("does not exist" in fault for fault in faults_of("hello", arrivals))


def test_offered_load_is_removed_by_null_and_not_by_nothing() -> None:
    scenario = load_scenario("pool-wide-skewed", ("workload.offered_load=null",))
    assert scenario.workload.offered_load is None
    (fault,) = faults_of("pool-wide-skewed", "workload.offered_load=")
    assert fault.startswith("--set workload.offered_load: ")
    assert "write null" in fault


def test_a_topology_or_profile_alone_blames_the_command_line_only() -> None:
    for setting in ("links.wan.foo=3", "shape.ratio=7", "links.wan.rtt=", "pool.size", "wan=1"):
        with pytest.raises(ScenarioError) as caught:
            profile_alone("clean", (setting,))
        assert "hello" not in str(caught.value)
        assert all(fault.startswith("--set") for fault in caught.value.faults)
        with pytest.raises(ScenarioError) as caught:
            topology_alone("two-dc", {"legs": 2}, (setting,))
        assert "hello" not in str(caught.value)
        assert all(fault.startswith("--set") for fault in caught.value.faults)


def test_no_shipped_topology_places_relays_unasked() -> None:
    for name in names(DataKind.TOPOLOGIES):
        relay = load_topology(name).parameters.get("relay")
        assert relay is None or relay.default == 0


def test_a_later_setting_mends_an_earlier_one() -> None:
    scenario = load_scenario("hello", ("pool.size=5000", "pool.size=12"))
    assert scenario.pool.size == 12


def test_unknown_scenarios_list_the_known_ones() -> None:
    assert "did you mean 'hello'?" in faults_of("helo")[0]
    assert "cannot be read" in faults_of("./nowhere.yaml")[0]


def test_link_overrides_keep_the_rest_of_the_profile() -> None:
    spec = load_scenario(
        "hello",
        (
            "links.wan.segmentation=frame",
            "links.wan.buffer=0.5 bdp",
            "links.wan.loss={kind: gilbert-elliott, p: 1 %, r: 20 %, bad_loss: 50 %, "
            "good_loss: 0 %}",
        ),
    ).link("wan")
    assert spec.rate_bps == 10_000_000_000
    assert spec.delay_ns == 10_000_000
    assert spec.buffer_bytes == 12_500_000
    assert spec.superframe_bytes == spec.mtu == 9_000
    assert spec.loss == GilbertElliott(p=0.01, r=0.2, bad_loss=0.5, good_loss=0.0)


def test_the_public_line_loses_what_its_source_says() -> None:
    spec = compose(load_profile("wan-10g"), LinkChoice())
    assert isinstance(spec, LinkSpec)
    assert isinstance(spec.loss, RandomLoss)
    packets_per_s = 16.2e9 / 8 / 1448
    assert spec.loss.share == pytest.approx(180 / packets_per_s, rel=0.005)
    assert 2 * spec.delay_ns == 29_750_000


def test_a_scenario_may_bring_its_own_profile(tmp_path: Path) -> None:
    profiles = tmp_path / "tc_profiles"
    profiles.mkdir()
    shipped = load_scenario("hello")
    source = Path(shipped.inputs[2].path).read_text()
    assert "name: clean" in source
    (profiles / "mine.yaml").write_text(
        source.replace("name: clean", "name: mine").replace("value: 2 us", "value: 6 us")
    )
    scenario = tmp_path / "own.yaml"
    scenario.write_text(shipped.resolved_yaml())
    loaded = load_scenario(str(scenario), ("links.client.profile=mine",))
    assert loaded.link("client").delay_ns == 3_000
    assert str(profiles / "mine.yaml") in {file.path for file in loaded.inputs}


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("rate: {value: 100 Gbit/s, source:", "rate: {value: 100, source:", "rate.value: 100 has"),
        ("rtt: {value: 2 us, source:", "rtt: {value: 200 ns, source:", "rtt: is below 2 us"),
        ("value: 9000 B, source: \"chosen: jumbo frames, as on the fabric\"", "value: 9000 B",
         "mtu.source: is missing"),
        ("name: clean", "name: dirty", "name: must be 'own'"),
        ("name: clean", "name: own\ncorrelation: 3 %", "correlated random loss"),
        ("name: clean",
         "name: own\njitter:\n  spread: {value: 1 ms, source: x}\n"
         "  distribution: {value: normal, source: x}\n  reorder: {value: false, source: x}",
         "jitter: spread 1000000 ns exceeds the one-way delay"),
    ],
)  # fmt: skip
def test_a_wrong_profile_is_refused_at_its_own_line(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    source = Path(load_scenario("hello").inputs[2].path).read_text()
    assert old in source
    text = source.replace(old, new)
    if "name: clean" in text:
        text = text.replace("name: clean", "name: own")
    (tmp_path / "tc_profiles").mkdir()
    (tmp_path / "tc_profiles" / "own.yaml").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load_profile("own", tmp_path)
    assert any("own.yaml:" in line and fault in line for line in caught.value.faults)


def test_numbers_of_the_pool_study_are_the_papers() -> None:
    wide, narrow = load_scenario("pool-wide-skewed"), load_scenario("pool-narrow-even")
    for scenario in (wide, narrow):
        assert scenario.workload.longest_input == 65_536
        assert scenario.file.workload.arrivals.kind == "poisson"
        assert scenario.file.workload.arrivals.rate.per_second == 80.0
        assert dict(scenario.parameters)["legs"] == 2
        assert scenario.link("wan").rate_bps == 10_000_000_000
        assert scenario.workload.offered_load is not None
        assert scenario.workload.offered_load.ratio == 1.04
    assert wide.links == narrow.links
    assert wide.pool == narrow.pool
    assert wide.tcp == narrow.tcp
    assert wide.shape == narrow.shape


def test_kv_profiles_agree_with_published_totals() -> None:
    def at(kv: str, tokens: int) -> float:
        scenario = load_scenario("hello", (f"shape.kv={kv}", "shape.precision=bf16"))
        shape = scenario.shape
        return (shape.bytes_per_token * tokens + shape.fixed_bytes) / 2**30

    assert at("deepseek-v4-pro", 2**20) == pytest.approx(9.62, abs=0.02)
    assert at("deepseek-v3", 2**17) == pytest.approx(8.578, abs=0.001)
    assert at("qwen3-8b", 32_768) == pytest.approx(4.50, abs=0.001)


def test_the_transfer_of_rdma_1gib_is_one_gibibyte() -> None:
    scenario = load_scenario("rdma-1gib")
    assert scenario.shape.bytes_per_token * scenario.workload.longest_input == 2**30


def test_data_is_found_inside_an_installed_package_and_beside_a_checkout(tmp_path: Path) -> None:
    package = tmp_path / "testbed"
    package.mkdir()
    assert folder(DataKind.SCENARIOS, package) == tmp_path / "scenarios"
    (package / "data" / "scenarios").mkdir(parents=True)
    assert folder(DataKind.SCENARIOS, package) == package / "data" / "scenarios"
