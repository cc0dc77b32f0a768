"""Bounds on metrics: units must suit, and they hold or they do not."""

from __future__ import annotations

import pytest

from testbed.checks.judge import CHECKS
from testbed.errors import UnitError
from testbed.scenario.checknames import CHECK_NAMES
from testbed.scenario.expect import Bound, Expect

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "metric", "held", "broken"),
    [
        ("< 5 s", "transfer.p99_s", 4.99, 5.0),
        ("<= 250 ms", "ttft.p50_s", 0.25, 0.2500001),
        ("> 90 %", "pool.utilization", 0.91, 0.9),
        (">= 30 /min", "goodput_rps", 0.5, 0.49),
        ("== 0", "requests.failed", 0, 1),
        ("< 1 MiB", "link.wan1.backlog_max_bytes", 1_048_575, 1_048_576),
        ("<= 104 %", "offered_load", 1.04, 1.05),
    ],
)
def test_a_bound_holds_up_to_its_limit(text: str, metric: str, held: float, broken: float) -> None:
    bound = Bound.parse(text)
    assert bound.holds(metric, held)
    assert not bound.holds(metric, broken)
    assert Bound.parse(str(bound)) == bound


@pytest.mark.parametrize("text", ["5 s", "< ", "=< 5 s", "< 5 s < 6 s", "!= 3"])
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        Bound.parse(text)


def test_limits_come_out_in_si_units() -> None:
    expect = Expect.model_validate({"metrics": {"ttft.p99_s": "< 250 ms", "pool.size": "== 8"}})
    assert expect.limits == (("ttft.p99_s", "<", 0.25), ("pool.size", "==", 8.0))


def test_violations_may_name_every_check_and_nothing_else() -> None:
    names = {check.name for check in CHECKS}
    missing, stale = names.difference(CHECK_NAMES), set(CHECK_NAMES).difference(names)
    assert not missing, f"add to CHECK_NAMES in testbed/scenario/checknames.py: {sorted(missing)}"
    assert not stale, f"remove from testbed/scenario/checknames.py: {sorted(stale)}"
    assert len(CHECK_NAMES) == len(set(CHECK_NAMES))
    assert Expect.model_validate({"violations": sorted(names)}).violations == tuple(sorted(names))


def test_links_that_bounds_speak_of_are_known() -> None:
    bounds = {"link.wan1.drops": "== 0", "link.wan9.utilization": "< 5 %", "pool.size": "== 8"}
    assert Expect.model_validate({"metrics": bounds}).links == {"wan1", "wan9"}
