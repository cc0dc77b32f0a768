"""The report says which faults were scheduled, in words, and shades when they were in force."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.contract.ailment import FewDescriptors, SlowCompute, Stall
from testbed.contract.fault import (
    AddedDelay,
    AddedJitter,
    AddedLoss,
    AgentFault,
    Corruption,
    Down,
    Duplication,
    LinkFault,
    NodeFault,
    PlannedFault,
    SlowRate,
    Span,
)
from testbed.contract.link import GilbertElliott, Jitter
from testbed.contract.plan import Plan
from testbed.contract.scale import Scale
from testbed.metrics.compute import compute
from testbed.report.fault_effects import effects_table
from testbed.report.fault_table import MOST_BANDS, fault_bands, fault_table
from testbed.report.run_report import run_page
from testbed.report.summary import RunSummary, summarize
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

pytestmark = pytest.mark.unit
S, MS = 10**9, 10**6
ONCE = (Span(begin_ns=1 * S, end_ns=1_500 * MS),)


def on_link(effect: object, backward: bool = True, spans: tuple[Span, ...] = ONCE) -> LinkFault:
    kind = effect.kind  # type: ignore[attr-defined]
    return LinkFault(
        name=f"the-{kind}", spans=spans, links=("wan1",), forward=True, backward=backward,
        effect=effect,
    )  # fmt: skip


FAULTS: tuple[PlannedFault, ...] = (
    on_link(Down(), backward=False),
    on_link(SlowRate(rate_bps=10**8)),
    on_link(AddedDelay(delay_ns=30 * MS)),
    on_link(AddedJitter(jitter=Jitter(spread_ns=MS))),
    on_link(AddedLoss(loss=GilbertElliott(p=0.01, r=0.5))),
    on_link(Duplication(share=0.01)),
    on_link(Corruption(share=0.02)),
    NodeFault(name="gc", spans=(Span(begin_ns=2 * S),), nodes=("md1",), act="pause"),
    AgentFault(name="hot", spans=ONCE, nodes=("md1", "p1"), effect=SlowCompute(factor=3)),
    AgentFault(name="deaf", spans=ONCE, nodes=("md1",), effect=Stall()),
    AgentFault(name="few", spans=ONCE, nodes=("p1",), effect=FewDescriptors(left=2)),
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    return write_run_folder(folder, FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4))


def with_faults(run: Path, *faults: PlannedFault, slow: float = 1.0) -> RunSummary:
    path = run / "plan.json"
    plan = Plan.model_validate_json(path.read_bytes())
    changed = plan.model_copy(update={"faults": faults, "scale": Scale(slow=slow)})
    path.write_text(changed.model_dump_json())
    return summarize(run)


def test_a_run_without_faults_has_neither_table_nor_shades(run: Path) -> None:
    summary = summarize(run)
    assert fault_table(summary).rows == ()
    assert fault_bands(summary) == ()
    assert 'id="faults"' not in run_page(summary)


def test_every_fault_is_said_in_words(run: Path) -> None:
    rows = {row[0]: row[1:] for row in fault_table(with_faults(run, *FAULTS)).rows}
    assert rows["the-down"] == ("wan1, forward", "nothing passes", "1 s to 1.5 s")
    assert rows["the-rate"][1] == "at most 100 Mbit/s"
    assert rows["the-delay"][1] == "30.0 ms later"
    assert rows["the-loss"][1].startswith("gilbert-elliott loss, p 1.0 %, r 50.0 %")
    assert rows["gc"] == ("md1", "stands still", "2 s to the end")
    assert rows["hot"][:2] == ("md1, p1", "steps take 3 times their profile")
    assert rows["few"][1] == "may open 2 files and sockets more"
    assert len(rows) == len(FAULTS)


def test_figures_are_emulated_ones_whatever_the_scale(run: Path) -> None:
    slow = with_faults(
        run, on_link(SlowRate(rate_bps=10**7)), on_link(AddedDelay(delay_ns=300 * MS)), slow=10
    )
    assert [row[2] for row in fault_table(slow).rows] == ["at most 100 Mbit/s", "30.0 ms later"]


def test_charts_shade_every_span_up_to_a_bound(run: Path) -> None:
    spans = tuple(Span(begin_ns=n * MS, end_ns=n * MS + 1) for n in range(0, 400, 4))
    bands = fault_bands(with_faults(run, on_link(Down(), spans=spans)))
    assert len(bands) == MOST_BANDS < len(spans)
    assert [band.label for band in bands[:2]] == ["the-down", ""]
    assert all(band.fault for band in bands)


def test_the_page_has_a_section_of_faults(run: Path) -> None:
    page = run_page(with_faults(run, *FAULTS))
    assert 'id="faults"' in page
    assert "steps take 3 times their profile" in page


def test_what_repeats_is_counted(run: Path) -> None:
    spans = tuple(Span(begin_ns=n * S, end_ns=n * S + 1) for n in range(10))
    (row,) = fault_table(with_faults(run, on_link(Down(), spans=spans))).rows
    assert row[3].endswith("and 7 times more")
    (never,) = fault_table(with_faults(run, on_link(Down(), spans=()))).rows
    assert never[3] == "never: every chance was missed"


def test_the_report_says_what_a_fault_did_and_how_service_came_back(run: Path) -> None:
    assert effects_table(summarize(run)).rows == ()
    with_faults(run, on_link(Down()))
    compute(run)
    summary = summarize(run)
    (row,) = effects_table(summary).rows
    assert row[0] == "the-down"
    assert all("% /" in cell for cell in row[1:4])
    assert "What the faults did" in run_page(summary)


@pytest.mark.parametrize(("ratio", "said"), [(0.6, True), (1.4, False)])
def test_transfers_that_stay_slower_than_under_the_fault_are_said_aloud(
    run: Path, ratio: float, said: bool
) -> None:
    with_faults(run, on_link(Down()))
    compute(run)
    path = run / "metrics.json"
    tree = json.loads(path.read_text())
    tree["faults"]["the-down"]["after_over_during"] = ratio
    path.write_text(json.dumps(tree))
    notes = " ".join(effects_table(summarize(run)).notes)
    assert ("slower after the fault than during it: the-down (60.0 %)" in notes) == said
