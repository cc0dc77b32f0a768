"""The studies beside Tables 2 and 4: what they run can be planned, and their claims can fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.checks.finding import Status
from testbed.checks.metrics_file import MetricsFile
from testbed.errors import AnalysisError
from testbed.metrics.run import read_run
from testbed.reproduce import (
    amortise,
    drc,
    fig8,
    handoff,
    parity,
    pool,
    prfaas,
    routing,
    slaload,
    table1,
    table5,
    table7,
    table8,
)
from testbed.reproduce.deployment import IDC, IMPLIED, PDD, Deployment, gain
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes, RunOutcome
from testbed.reproduce.perform import jobs
from testbed.reproduce.study import Study
from testbed.run.prepare import prepare
from testbed.scenario.hardware_file import read_hardware_file
from testbed.scenario.profiles import hardware_profiles
from tests.fakes.outcomes import outcomes
from tests.fakes.serving_run import serving_story, write_serving_run

STUDIES = (
    amortise.STUDY, drc.STUDY, fig8.STUDY, handoff.STUDY, parity.STUDY, pool.STUDY, prfaas.STUDY,
    routing.STUDY, table1.STUDY, table5.STUDY, table7.STUDY, table8.STUDY,
)  # fmt: skip


def once(values: Mapping[tuple[str, str], float]) -> Outcomes:
    """One seed of each value."""
    return outcomes({key: {1: value} for key, value in values.items()}, Extent.QUICK)


def holds(study: Study, name: str, values: Mapping[tuple[str, str], float]) -> bool:
    """Whether nothing speaks against the claim ``name``."""
    claim = next(claim for claim in study.claims if claim.name == name)
    return not claim.judge(once(values)).against


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_quick_run_can_be_planned(study: Study, tmp_path: Path) -> None:
    wanted = jobs(study, Extent.QUICK, 1)
    assert wanted
    for _, seed, job in wanted:
        assert prepare(job.scenario, job.overrides, seed, place=tmp_path).requests


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_single_change_can_be_planned(study: Study, tmp_path: Path) -> None:
    labels = [variant.label for variant in study.variants(Extent.NORMAL)]
    for variant in study.variants(Extent.NORMAL):
        if variant.against:
            assert variant.against in labels
            base = next(v for v in study.variants(Extent.NORMAL) if v.label == variant.against)
            assert variant.overrides_of(1) != base.overrides_of(1)
            assert prepare(variant.scenario, variant.overrides_of(1), 1, place=tmp_path).requests


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_rows_belong_to_variants(study: Study) -> None:
    labels = {variant.label for variant in study.variants(Extent.NORMAL)}
    contrasts = {contrast.name for contrast in study.contrasts}
    measures = {measure.name for measure in study.measures}
    for contrast in study.contrasts:
        assert {contrast.variant, contrast.base} <= labels
        assert contrast.measure in measures
    for measure in study.measures:
        assert set(measure.only) <= labels
    for figure in study.published:
        known = contrasts if not figure.measure else labels
        assert figure.variant in known
        assert not figure.measure or figure.measure in measures
    quick = {variant.label for variant in study.variants(Extent.QUICK)}
    assert quick <= labels


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_claims_without_figures_are_refused(study: Study) -> None:
    for claim in study.claims:
        try:
            judged = claim.judge(once({}))
        except (AnalysisError, ValueError):
            continue
        assert judged.against


def test_handoff_claims() -> None:
    good = {
        ("catch-up", "stall.count"): 0.0, ("catch-up", "gap_mean_s"): 0.02,
        ("one-shot", "gap_mean_s"): 0.3, ("one-shot", "gap_max_s"): 0.6,
    }  # fmt: skip
    assert holds(handoff.STUDY, "catch-up-never-stalls", good)
    assert holds(handoff.STUDY, "one-shot-dips-briefly", good)
    stalled = good | {("catch-up", "stall.count"): 1.0}
    assert not holds(handoff.STUDY, "catch-up-never-stalls", stalled)
    for gap_s in (0.03, 0.5):
        other = good | {("one-shot", "gap_mean_s"): gap_s}
        assert not holds(handoff.STUDY, "one-shot-dips-briefly", other)
    one_mode = {("dynamic", "serving.handoffs_by_mode.catch-up"): 9.0}
    assert not holds(handoff.STUDY, "dynamic-uses-both", one_mode)


@pytest.mark.parametrize("study", [handoff.STUDY, table5.STUDY], ids=lambda study: study.name)
@pytest.mark.parametrize("extent", [Extent.QUICK, Extent.NORMAL])
def test_the_requests_of_each_seed_fill_the_line_alike(study: Study, extent: Extent) -> None:
    for variant in study.variants(extent):
        due = 0.4 if variant.label.endswith("-half") else 0.8
        for seed in range(1, study.seed_count(extent, variant, None) + 1):
            plan = prepare(variant.scenario, variant.overrides_of(seed), seed).plan
            assert plan.offered.load == pytest.approx(due, abs=0.001)


def test_table5_claims() -> None:
    values = {
        ("incremental-kv", "kv_mean_s"): 0.2, ("incremental-kv", "kv_sd_s"): 0.1,
        ("incremental-kv", "kv_max_s"): 0.5, ("incremental-kv", "kv_100_bytes"): 500_000.0,
        ("token-ids", "extend_mean_s"): 0.3, ("token-ids", "extend_sd_s"): 0.01,
        ("token-ids", "id_100_bytes"): 2_000.0,
    }  # fmt: skip
    assert all(holds(table5.STUDY, claim.name, values) for claim in table5.STUDY.claims)
    varied = values | {("token-ids", "extend_sd_s"): 0.1}
    assert not holds(table5.STUDY, "ids-are-flat", varied)
    assert not holds(table5.STUDY, "kv-has-a-tail", values | {("incremental-kv", "kv_max_s"): 0.25})
    assert not holds(table5.STUDY, "kv-is-bulky", values | {("token-ids", "id_100_bytes"): 9e4})


def test_drc_compares_the_cut_with_the_hit_of_the_same_requests() -> None:
    values = {
        (f"{name}-{state}", measure): value
        for name in ("wide", "narrow")
        for state, measure, value in (
            ("drc", "request_bytes", 33e6), ("none", "request_bytes", 330e6),
            ("drc", "cache.md_hit", 0.9),
        )
    }  # fmt: skip
    assert holds(drc.STUDY, "cut-is-the-uncached-part", values)
    assert not holds(
        drc.STUDY, "cut-is-the-uncached-part", values | {("wide-drc", "cache.md_hit"): 0.8}
    )


def test_routing_claims() -> None:
    values = {
        ("h-90", "relayed_share"): 0.2, ("h-95", "relayed_share"): 0.26,
        ("random", "cache.md_hit"): 0.3, ("session-sticky", "cache.md_hit"): 0.9,
    }  # fmt: skip
    assert all(holds(routing.STUDY, claim.name, values) for claim in routing.STUDY.claims)
    assert not holds(routing.STUDY, "split-follows-h", values | {("h-90", "relayed_share"): 0.3})
    for share in (0.19, 0.31):
        other = values | {("h-95", "relayed_share"): share}
        assert not holds(routing.STUDY, "splits-three-to-one", other)
    near = values | {("random", "cache.md_hit"): 0.85}
    assert not holds(routing.STUDY, "random-choice-collapses", near)


def test_parity_claims() -> None:
    values = {
        (label, measure): value
        for label, p, md in (("pdd", 0.90, 0.89), ("p-rld", 0.90, 0.60))
        for measure, value in (
            ("serving.parity.p_hit", p), ("serving.parity.md_hit", md), ("gap_share", p - md),
        )
    }  # fmt: skip
    assert all(holds(parity.STUDY, claim.name, values) for claim in parity.STUDY.claims)
    assert not holds(parity.STUDY, "parity-holds", values | {("pdd", "gap_share"): 0.05})
    assert not holds(parity.STUDY, "p-rld-breaks-parity", values | {("p-rld", "gap_share"): 0.05})


def test_chips_must_rank_as_published() -> None:
    rates = {"h100": (1.0, 1.0), "a": (0.57, 0.39), "c": (0.42, 0.56), "e": (0.8, 2.1)}
    values = {
        (f"{chip}-{phase}", f"{phase}_rate"): rate
        for chip, both in rates.items()
        for phase, rate in zip(("prefill", "decode"), both, strict=True)
    } | {(f"{chip}-decode", "tpot.p90_s"): 0.05 for chip in rates}
    assert all(holds(table1.STUDY, claim.name, values) for claim in table1.STUDY.claims)
    swapped = values | {("e-decode", "decode_rate"): 0.9}
    assert not holds(table1.STUDY, "chips-rank-as-published", swapped)
    assert not holds(table1.STUDY, "limit-is-kept", values | {("a-decode", "tpot.p90_s"): 0.051})


def test_best_rate_is_the_highest_within_the_level() -> None:
    values = {
        (label, measure): value
        for label, good, tpot_s in (
            ("pdd-9", 9.0, 0.036), ("pdd-11-5", 11.0, 0.040),
            ("idc-9", 8.8, 0.049), ("idc-11-5", 9.5, 0.055),
        )
        for measure, value in (
            ("kept_rps", good), ("tpot.p50_s", tpot_s),
            ("sla.ttft_share", 1.0), ("sla.tpot_share", 0.95 if tpot_s <= 0.05 else 0.2),
        )
    }  # fmt: skip
    found = once(values)
    assert table8.best(found, "pdd") == ("pdd-11-5", 11.0)
    assert table8.best(found, "idc") == ("idc-9", 8.8)
    assert all(holds(table8.STUDY, claim.name, values) for claim in table8.STUDY.claims)
    poor = values | {("pdd-11-5", "kept_rps"): 8.0, ("pdd-9", "kept_rps"): 8.0}
    assert not holds(table8.STUDY, "pdd-has-the-higher-bcr", poor)


def test_goodput_is_of_the_nominal_rate_whatever_was_drawn(tmp_path: Path) -> None:
    write_serving_run(tmp_path, serving_story())
    measure_s = read_run(tmp_path).measure_s
    tree = {"goodput_rps": 6 / measure_s, "requests": {"offered": 8}}
    metrics = MetricsFile(tmp_path, tree)
    run = RunOutcome("pdd-11-5", 1, tmp_path, metrics, Status.PASS)
    assert table8.kept_rps(run) == pytest.approx(11.5 * 6 / 8)
    assert table8.offered_rps(run) == pytest.approx(8 / measure_s)
    for variant in table8.STUDY.variants(Extent.NORMAL):
        assert f"rate: {slaload.nominal_rps(variant.label):g} /s" in variant.overrides[3]


def test_a_long_window_is_told_beside_the_best_rate() -> None:
    values = {
        (label, measure): value
        for label, ttft_s, share in (
            ("pdd-11-5", 5.0, 0.99), ("idc-9", 2.0, 0.99), ("long-pdd-11-5", 10.1, 0.89),
        )
        for measure, value in (
            ("kept_rps", 9.0), ("ttft.p90_s", ttft_s), ("sla.ttft_share", share),
            ("sla.tpot_share", 0.99),
        )
    }  # fmt: skip
    assert "P90 of TTFT is 10.1 s at 11.5/s (breaks it)" in table8.pays(once(values)).evidence


def test_varied_profiles_differ_by_two_percent_of_their_base_only() -> None:
    shipped = hardware_profiles().profiles
    for name in ("h100-d", "h200-md"):
        for word, factor in (("faster", 0.98), ("slower", 1.02)):
            path = slaload.VARIED / f"{name}-{word}.yaml"
            own, base = read_hardware_file(path), shipped[name].resolve(name)
            assert own.decode_base_s == pytest.approx(base.decode_base_s * factor, abs=1e-6)
            same = {"name": base.name, "source": base.source, "decode_base_s": base.decode_base_s}
            assert own.model_copy(update=same) == base


def test_prfaas_claims() -> None:
    values = {
        ("prfaas", "offloaded_share"): 0.5, ("prfaas", "egress-gbit"): 13.0,
        ("all-far", "egress-gbit"): 16.0,
    }  # fmt: skip
    assert all(holds(prfaas.STUDY, claim.name, values) for claim in prfaas.STUDY.claims)
    full = values | {("prfaas", "egress-gbit"): 60.0}
    assert not any(holds(prfaas.STUDY, claim.name, full) for claim in prfaas.STUDY.claims)
    few = values | {("prfaas", "offloaded_share"): 0.1}
    assert not holds(prfaas.STUDY, "half-goes-far", few)


def test_fig8_and_amortise_claims() -> None:
    shares = {
        ("as-published", "rld.token_share"): 0.01, ("narrow-line", "rld.token_share"): 0.03,
    }  # fmt: skip
    assert all(holds(fig8.STUDY, claim.name, shares) for claim in fig8.STUDY.claims)
    large = shares | {("as-published", "rld.token_share"): 0.2}
    assert not any(holds(fig8.STUDY, claim.name, large) for claim in fig8.STUDY.claims)
    busy = {(f"p-{n}", "busy_share"): n / 50 for n in (5, 10, 20)}
    assert holds(amortise.STUDY, "rld-amortises", busy)
    assert not holds(amortise.STUDY, "rld-amortises", busy | {("p-20", "busy_share"): 0.95})


def test_implied_prices_give_the_published_gains() -> None:
    assert (PDD.cost(1.0).total, IDC.cost(1.0).total) == (75.0, 88.0)
    gains = [gain(11.5, 9.0, ratio) for ratio in IMPLIED]
    assert gains == pytest.approx([0.375, 0.324], abs=0.01)
    with pytest.raises(AnalysisError, match="no answer"):
        gain(11.5, 0.0, 1.26)
    assert Deployment(20, 1, 32, 0).relay_share(1.0) < PDD.relay_share(1.0)


@pytest.mark.parametrize(("scenario", "own"), [("pdd-paper", PDD), ("idc-pd-paper", IDC)])
def test_costs_are_those_of_the_scenarios(scenario: str, own: Deployment) -> None:
    cost = prepare(scenario, ("window={measure: 1 s, drain: 1 s}",)).plan.cost
    assert cost is not None
    assert own.cost(1.26).total == pytest.approx(cost.total)
    assert own.cost(1.26).unit == cost.unit


def test_table_8_shows_published_figures_beside_its_own() -> None:
    values = {
        (label, measure): value
        for label, good in (("pdd-11-5", 11.0), ("idc-9", 8.8))
        for measure, value in (
            ("kept_rps", good), ("sla.ttft_share", 1.0), ("sla.tpot_share", 0.95),
            ("offered_rps", 10.5), ("ttft.p50_s", 4.0), ("ttft.p90_s", 9.0),
            ("tpot.p50_s", 0.03), ("tpot.p90_s", 0.04),
        )
    }  # fmt: skip
    rates, prices = table8.STUDY.tables(once(values))
    assert [row[:4] for row in rates.rows] == [
        ("pdd-11-5", "11.5", "11", "10.50"), ("idc-9", "9.0", "8.80", "10.50"),
    ]  # fmt: skip
    assert {row[0]: row[1] for row in prices.rows}["1.21"] == "+37.5 %"
    assert {len(row) for row in rates.rows} == {len(rates.head)}
