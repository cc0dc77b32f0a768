"""The serving part of a scenario: rules come out as the router reads them, nonsense is refused."""

from __future__ import annotations

import pytest

from testbed.contract.router import HitThreshold, LengthThreshold, Prfaas, PrfaasPdd, WanTime
from testbed.errors import PlanError, ScenarioError
from testbed.plan.refuse import refuse_serving
from testbed.scenario import load_scenario

pytestmark = pytest.mark.unit


def rule_of(setting: str) -> object:
    serving = load_scenario("prfaas-pdd", (f"serving.pipeline={setting}",)).file.serving
    assert serving is not None
    return serving.pipeline.rule()


def test_prefill_as_a_service_may_be_chosen_with_its_schedule() -> None:
    assert rule_of("{kind: prfaas}") == Prfaas(schedule=LengthThreshold())
    wanted = LengthThreshold(
        threshold_tokens=2048, lowest_tokens=512, highest_tokens=4096, low=0.05, high=0.5,
        gain=0.25, interval_ns=2_000_000_000,
    )  # fmt: skip
    schedule = (
        "{threshold: 2048 tokens, lowest: 512 tokens, highest: 4 Kitokens, low: 5 %, high: 50 %, "
        "gain: 25 %, interval: 2 s}"
    )
    assert rule_of(f"{{kind: prfaas, schedule: {schedule}}}") == Prfaas(schedule=wanted)
    for inner, rule in (
        ("{kind: wan-time, bound: 200 ms}", WanTime(bound_ns=200_000_000)),
        ("{kind: hit-threshold, threshold: 60 %}", HitThreshold(threshold=0.6)),
    ):
        assert rule_of(f"{{kind: prfaas-pdd, pipeline: {inner}}}") == PrfaasPdd(
            schedule=LengthThreshold(), pipeline=rule
        )


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("serving.pipeline.threshold=120 %", "is too large; use at most 100 %"),
        ("serving.pipeline.threshold=-1 %", "is negative"),
        ("serving.pipeline.threshold=0.9", "has no unit"),
        ("serving.pipeline={kind: threshold}", "unknown kind 'threshold'"),
        ("serving.pipeline={kind: wan-time, bound: 0 s}", "bound must be longer than 0 ns"),
        (
            "serving.pipeline={kind: prfaas, schedule: {threshold: 10 tokens}}",
            "lowest <= threshold",
        ),
        ("serving.pipeline={kind: prfaas, schedule: {low: 95 %}}", "needs low < high"),
        ("serving.pipeline={kind: prfaas, schedule: {gain: 0 %}}", "set lowest and highest to it"),
        ("serving.pipeline={kind: prfaas-pdd}", "pipeline.pipeline: is missing"),
        ("serving.pipeline={kind: prfaas-pdd, pipeline: {kind: direct}}", "unknown kind 'direct'"),
        ("serving.hardware.relay=h999", "unknown name 'h999'; known: chip-a"),
        ("serving.instances.decode=best", "Input should be 'random'"),
        ("serving.handoff.lower=90 %", "serving.handoff.lower: needs lower < upper"),
        ("serving.handoff.most=1 tokens", "serving.handoff.most: needs least <= most"),
        ("serving.handoff.hold=0 s", "serving.handoff.hold: must be above 0"),
        ("serving.handoff.easy=100 %", "serving.handoff.easy: must be below 100 %"),
        ("serving.queue.chunk=0 tokens", "serving.queue.chunk: must be above 0"),
        ("serving.match_timeout=0 s", "serving.match_timeout: must be above 0"),
        ("workload.offered_load=90 %", "does nothing with a serving plane"),
        ("shape.ratio=100", "shape.block: block / ratio = 128 / 100 is not a whole number"),
        ("model.name=gpt", "model.name: Input should be 'nano'"),
        ("expect.metrics.serving.pipelines.P-XX=< 3", "unknown name 'serving.pipelines.P-XX'"),
        ("expect.metrics.rld.token_shar=< 3 %", "did you mean 'rld.token_share'?"),
        ("expect.metrics.serving.instances.md1.hit=< 3 s", "unit"),
    ],
)
def test_nonsense_is_refused_at_its_key(setting: str, reason: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario("pdd-hello", (setting,))
    assert len(caught.value.faults) == 1
    assert (
        caught.value.faults[0].startswith("--set ") or "pdd-hello.yaml:" in caught.value.faults[0]
    )
    assert reason in caught.value.faults[0]


@pytest.mark.parametrize("name", ["pdd-hello", "idc-pd"])
def test_prefill_as_a_service_needs_two_clusters(name: str) -> None:
    scenario = load_scenario(name, ("serving.pipeline={kind: prfaas}",))
    with pytest.raises(PlanError, match="no P stands"):
        refuse_serving(scenario)
    refuse_serving(load_scenario("prfaas-pdd", ("serving.pipeline={kind: prfaas}",)))


@pytest.mark.parametrize("bound", ["rld.token_share=< 50 %", "goodput_rps=> 1 /s"])
def test_what_only_a_serving_plane_has_needs_one(bound: str) -> None:
    name, limit = bound.split("=")
    with pytest.raises(ScenarioError, match="only a serving plane has this metric"):
        load_scenario("hello", (f"expect.metrics={{{name}: '{limit}'}}",))


def stop_of(name: str, *settings: str) -> tuple[int, ...]:
    return load_scenario(name, settings).agent_model(None).stop


def test_an_answer_may_end_with_a_token_that_the_scenario_names() -> None:
    assert stop_of("pdd-hello") == ()
    assert stop_of("pdd-hello", "model.stop=[3, 511]") == (3, 511)
    assert stop_of("pdd-hello", "model.name=smollm2-135m", "model.stop=eos") == (2,)


@pytest.mark.parametrize(
    ("name", "setting", "reason"),
    [
        ("pdd-hello", "model.stop=[512]", "has tokens 0 to 511, not 512"),
        ("pdd-hello", "model.stop=[-1]", "model.stop"),
        ("pdd-hello", "model.stop=eos", "knows no end of its own"),
        ("hello", "model.stop=[1]", "needs a serving plane"),
    ],
)
def test_an_end_that_cannot_be_is_refused(name: str, setting: str, reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason):
        load_scenario(name, (setting,))
