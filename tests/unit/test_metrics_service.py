"""Service level and benefit-cost ratio: by hand, and as a scenario asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.contract.service import Cost, CostPart, Level
from testbed.errors import ScenarioError
from testbed.metrics import compute
from testbed.metrics.record import Metrics
from testbed.scenario import load_scenario
from testbed.scenario.metricnames import METRICS, is_metric, needs_serving
from tests.fakes.hand_run import figure
from tests.fakes.serving_run import serving_story, write_serving_run

pytestmark = pytest.mark.unit

COST = Cost(
    unit="one node",
    parts=(
        CostPart(role="prefill", nodes=4, node="h100", node_price=1.0),
        CostPart(role="decode", nodes=2, node="h200", node_price=2.0),
    ),
)


def changed(run: Path, **changes: object) -> dict[str, object]:
    path = run / "plan.json"
    plan = Plan.model_validate_json(path.read_bytes()).model_copy(update=changes)
    path.write_text(plan.model_dump_json())
    return dict(compute(run))


def test_the_ratio_is_goodput_over_the_cost_of_all_nodes(tmp_path: Path) -> None:
    run = write_serving_run(tmp_path / "run", serving_story())
    plain = compute(run)
    assert figure(plain, "bcr") is None
    goodput = figure(plain, "goodput_rps")
    assert isinstance(goodput, float)
    assert goodput > 0
    assert figure(changed(run, cost=COST), "bcr") == pytest.approx(goodput / 8.0)


def test_a_level_that_nobody_keeps_leaves_no_goodput(tmp_path: Path) -> None:
    run = write_serving_run(tmp_path / "run", serving_story())
    assert figure(compute(run), "sla.ttft_s") == 10.0
    strict = changed(run, level=Level(ttft_ns=1), cost=COST)
    assert figure(strict, "goodput_rps") == 0.0
    assert figure(strict, "bcr") == 0.0
    assert figure(strict, "sla.ttft_share") == 0.0
    assert figure(strict, "sla.kept") is False


def test_the_papers_clusters_cost_what_their_nodes_do() -> None:
    scenario = load_scenario("pdd-paper")
    prices = scenario.file.prices
    assert prices is not None
    cost = prices.resolve({role: scenario.count(role) for role in Role})
    assert {part.role: part.nodes for part in cost.parts} == {
        "prefill": 40, "relay": 3, "decode": 32
    }  # fmt: skip
    assert cost.total == pytest.approx(43 + 32 * 1.26)
    single = load_scenario("idc-pd-paper")
    assert single.file.prices is not None
    assert single.file.prices.resolve({r: single.count(r) for r in Role}).total == 88


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (("sla.ttft_p90=0 s",), "sla.ttft_p90: must be longer than 0 ns"),
        (("sla.ttft_p95=1 s",), "did you mean 'ttft_p90'?"),
        (("prices.instances.decode.node=h20",), "prices.instances.decode.node: unknown name 'h20'"),
        (("prices.nodes.h100=0",), "greater than 0"),
        (("prices=null", "expect.metrics.bcr=< 5"), "needs a price table"),
        (("expect.metrics.bcr=< 5 s",), "is not a plain number"),
    ],
)
def test_wrong_levels_and_prices_are_refused(settings: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario("pdd-paper", settings)
    assert reason in "\n".join(caught.value.faults)


def leaves(model: type[BaseModel], prefix: str = "") -> set[str]:
    """Names of all fields that are no models; of open mappings only their own."""
    found: set[str] = set()
    for name, field in model.model_fields.items():
        parts = [field.annotation, *getattr(field.annotation, "__args__", ())]
        inner = [p for p in parts if isinstance(p, type) and issubclass(p, BaseModel)]
        if inner and not str(field.annotation).startswith("dict"):
            found |= leaves(inner[0], f"{prefix}{name}.")
        else:
            found.add(prefix + name)
    return found


def test_every_metric_that_a_bound_may_name_is_one() -> None:
    assert set(METRICS) - leaves(Metrics) == set()
    for name in ("link.wan1.drops", "serving.pipelines.P-MD", "serving.instances.md1.hit",
                 "serving.stages.P-RLD-MD.eager_s", "serving.reasons.P-MD.wan-fast",
                 "serving.handoffs_by_mode.one-shot", "transfer.bytes_by_kind.kv",
                 "causes.stalls.by_fault.down-1", "causes.transfers.by_cause.congestion",
                 "causes.stalls.by_subject.wan1 forward", "faults.cut.after_ratio.ttft",
                 "faults.cut.after_over_during"):  # fmt: skip
        assert is_metric(name)
    for name in ("serving", "serving.pipelines.P-XX", "serving.otps", "link.wan1.speed", "wall_s"):
        assert not is_metric(name)
    assert needs_serving("rld.token_share")
    assert not needs_serving("cache.p_hit")
