"""The findings of Table 4 and Figure 7 hold, fail and cannot be told on made-up figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.checks.finding import Status
from testbed.errors import AnalysisError
from testbed.reproduce import fig7, table4
from testbed.reproduce.extent import Extent
from testbed.reproduce.fate import fates
from testbed.reproduce.firsttoken import over_time
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.reduce import judge
from testbed.reproduce.wancause import BASES, CAUSES, sensitivity
from testbed.reproduce.wancut import P90
from testbed.reproduce.wanload import (
    CDC,
    IDC,
    LOADS,
    LONG,
    PDD,
    label,
    main_points,
    rate_for,
)
from tests.fakes.outcomes import outcomes
from tests.fakes.serving_run import serving_story, write_serving_run

CUTS = dict(zip(LOADS, (0.01, 0.05, 0.2, 0.3, 0.5), strict=True))


def table(
    cuts: dict[float, float] = CUTS, pdd: float = 10.0, idc: float = 10.0, masked: float = 1.0
) -> Outcomes:
    values: dict[tuple[str, str], dict[int, float]] = {(IDC, P90): {1: idc, 2: idc}}
    for load, part in cuts.items():
        values[(label(PDD, load), P90)] = {1: pdd, 2: pdd}
        values[(label(CDC, load), P90)] = {1: pdd / (1 - part), 2: pdd / (1 - part)}
        values[(label(PDD, load), table4.MASKED)] = {1: masked, 2: masked}
    for own in ("full", f"{PDD}-over", "bytes", "bytes-buffers", "rates"):
        for name in ("ttft.p50_s", P90, "ttft.p99_s"):
            values[(own, name)] = {1: 5.0}
    return outcomes(values)


def status(name: str, figures: Outcomes) -> Status:
    claim = next(one for one in table4.STUDY.claims if one.name == name)
    return judge(claim, figures).status


def test_every_finding_holds_on_figures_that_show_it() -> None:
    assert {status(one.name, table()) for one in table4.STUDY.claims} == {Status.PASS}


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("overlap-pays-on-a-full-line", table({**CUTS, 1.0: 0.05})),
        ("no-gap-at-the-published-rate", table({**CUTS, 0.15: 0.4})),
        ("gap-grows-with-load", table({**CUTS, 1.05: 0.0})),
        ("pdd-like-one-datacentre", table(pdd=13.0)),
        ("relay-hides-the-transfer", table(masked=0.5)),
    ],
)
def test_each_finding_can_fail(name: str, figures: Outcomes) -> None:
    assert status(name, figures) is Status.FAIL


@pytest.mark.parametrize(
    ("name", "own", "p90"),
    [
        ("short-answers-agree", "full", 5.5),
        ("short-answers-agree", "full", 4.5),
        ("lower-rate-is-cautious", "bytes", 4.5),
    ],
)
def test_a_short_cut_that_changes_the_figure_fails(name: str, own: str, p90: float) -> None:
    known = table()
    values = {**known.values, (own, P90): {1: p90}}
    assert status(name, outcomes(values)) is Status.FAIL
    del values[(own, P90)]
    assert status(name, outcomes(values)) is Status.INVALID


def test_the_notes_name_the_load_at_which_the_published_cut_appears() -> None:
    assert "from a WAN load of 1.05 on" in table4.notes(table())[0]
    none = table4.notes(table(dict.fromkeys(LOADS, 0.2)))[0]
    assert "at no load up to 1.05; the largest cut is 20.0%" in none


def test_the_rate_of_a_leg_gives_each_seed_its_load() -> None:
    window = "window={warm_up: 1 s, measure: 4 s, drain: 10 s}"
    rates = {load: float(rate_for(load, window, 1).split("=")[1].split()[0]) for load in (0.5, 1.0)}
    assert rates[0.5] == pytest.approx(2 * rates[1.0], rel=1e-4)
    assert rate_for(0.5, window, 1) != rate_for(0.5, window, 2)


def test_every_load_has_one_long_window_and_4800_arrivals() -> None:
    assert "measure: 145 s" in LONG
    for variant in main_points(Extent.NORMAL):
        assert variant.overrides[0] == LONG
        assert table4.STUDY.seed_count(Extent.NORMAL, variant, None) * 145 * 11.5 >= 4800


def test_only_runs_of_one_window_are_compared() -> None:
    for extent in Extent:
        assert len({one.overrides[0] for one in main_points(extent)}) == 1
    by_label = {one.label: one for one in table4.variants(Extent.NORMAL)}
    for variant in by_label.values():
        if variant.against:
            assert variant.overrides[0] == by_label[variant.against].overrides[0]
    for cause in CAUSES:
        pdd, cdc = (by_label[own] for own in cause.pair)
        assert pdd.overrides[0] == cdc.overrides[0]


def test_a_single_change_has_its_load_and_one_change_only() -> None:
    by_label = {one.label: one for one in sensitivity()}
    assert {f"{own}-{name}" for own in (PDD, CDC) for name in BASES.values()} < set(by_label)
    for variant in by_label.values():
        if variant.against:
            base = by_label[variant.against]
            assert variant.scenario == base.scenario
            assert len(set(variant.overrides) - set(base.overrides)) in (1, 2)
            assert (variant.tuned is None) == (base.tuned is None)


def test_the_notes_say_how_each_change_altered_the_cut() -> None:
    known = table()
    pair = {("pdd-over", P90): {1: 5.0}, ("cdc-over", P90): {1: 10.0}}
    changed = {("pdd-over-h-80", P90): {1: 6.0}, ("cdc-over-pool-1", P90): {1: 9.0}}
    told = table4.notes(outcomes({**known.values, **pair, **changed}))[-1]
    assert "no change, 40 s: 50.0%; H of 80 %: 40.0%" in told
    assert "one connection" not in told


def test_a_load_without_a_faithful_pair_is_not_told() -> None:
    values = {key: value for key, value in table().values.items() if key[0] != label(CDC, 1.0)}
    assert status("overlap-pays-on-a-full-line", outcomes(values)) is Status.INVALID


def test_a_request_is_masked_when_its_token_was_first(tmp_path: Path) -> None:
    rows = {fate.req: fate for fate in fates(write_serving_run(tmp_path, serving_story()))}
    assert set(rows) == {1, 2}
    assert (rows[1].relayed, rows[1].masked, rows[1].transfer_s is None) == (True, True, False)
    assert (rows[2].relayed, rows[2].transfer_s) == (False, None)


def fig7_values(
    cdc: float, pdd: float, spread: float, masked: float, idle: float = 10.0
) -> Outcomes:
    return outcomes(
        {
            (label(CDC, 1.05), "ttft.transfer_share"): {1: cdc},
            (label(PDD, 1.05), "ttft.transfer_share"): {1: pdd},
            (label(CDC, 1.05), "transfer.p99_over_p50"): {1: spread},
            (label(CDC, 0.15), "transfer.p99_over_p50"): {1: idle},
            (label(CDC, 1.05), fig7.LIKE_SPREAD): {1: 3.0},
            (label(CDC, 0.15), fig7.LIKE_SPREAD): {1: 3.0},
            (label(PDD, 1.05), table4.MASKED): {1: masked},
        }
    )


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        (fig7_values(0.8, 0.1, 20, 1.0), Status.PASS),
        (fig7_values(0.1, 0.1, 2, 0.2), Status.FAIL),
        (outcomes({}), Status.INVALID),
    ],
)
def test_findings_of_figure_7(figures: Outcomes, expected: Status) -> None:
    assert {judge(claim, figures).status for claim in fig7.STUDY.claims} == {expected}


def test_transfers_as_uneven_on_an_idle_line_do_not_fluctuate() -> None:
    claim = next(one for one in fig7.STUDY.claims if one.name == "transfers-fluctuate")
    assert judge(claim, fig7_values(0.8, 0.1, 20, 1.0, idle=19)).status is Status.FAIL


def test_a_chart_without_its_run_is_refused() -> None:
    draw: Callable[[Outcomes, float], object] = over_time
    with pytest.raises(AnalysisError, match="has no faithful run"):
        draw(outcomes({}), 1.0)
