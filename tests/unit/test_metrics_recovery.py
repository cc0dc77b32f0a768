"""Before, during and after a fault, by hand; and a service that comes back, or does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.event import Kind
from testbed.contract.fault import Down, LinkFault, Span
from testbed.metrics.record import FaultEffect, Phase
from testbed.metrics.recovery import fault_effects
from testbed.metrics.transfer import Acked

pytestmark = pytest.mark.unit
S = 10**9


def effects(
    tokens_s: list[float], *spans_s: tuple[float, float | None],
    acked: tuple[tuple[float, int, float], ...] = (), last_s: float = 20.0, ttft_s: float = 0.1,
) -> dict[str, FaultEffect]:  # fmt: skip
    """Of one fault ``cut``; ``acked`` is (acknowledged at, bytes, duration). Each token is the
    first of a request, ``ttft_s`` after it was sent, or ten times that in the first span."""
    spans = tuple(
        Span(begin_ns=round(begin * S), end_ns=None if end is None else round(end * S))
        for begin, end in spans_s
    )
    fault = LinkFault(
        name="cut", spans=spans, links=("wan1",), forward=True, backward=True, effect=Down()
    )
    times = np.array(sorted(round(t * S) for t in tokens_s), dtype=np.int64)
    req = np.arange(times.size, dtype=np.int64)
    begin, end = spans_s[0]
    took = np.where((times >= begin * S) & (times < (end or last_s) * S), 10 * ttft_s, ttft_s)
    sent = times - np.rint(took * S).astype(np.int64)
    tables = {
        Kind.TOKEN: SimpleNamespace(t=times, req=req),
        Kind.REQUEST_SENT: SimpleNamespace(t=sent, req=req),
        Kind.BARRIER: SimpleNamespace(t=np.array([0, round(last_s * S)], dtype=np.int64)),
    }
    run: Any = SimpleNamespace(plan=SimpleNamespace(faults=(fault,)))
    events: Any = SimpleNamespace(tables=tables)
    events = type("E", (), {"tables": tables, "__getitem__": lambda _, kind: tables[kind]})()
    columns = [np.array([row[n] for row in acked]) for n in range(3)]
    done = Acked(
        t=(columns[0] * S).astype(np.int64) if acked else np.empty(0, dtype=np.int64),
        req=np.zeros(len(acked), dtype=np.int64),
        size_bytes=columns[1].astype(np.int64) if acked else np.empty(0, dtype=np.int64),
        wait_s=np.zeros(len(acked)),
        duration_s=columns[2].astype(np.float64) if acked else np.empty(0),
    )
    return fault_effects(run, events, done)


def every(step: float, begin: float, end: float) -> list[float]:
    return [float(t) for t in np.arange(begin, end, step)]


def test_each_side_is_as_long_as_the_fault() -> None:
    tokens = [*every(0.1, 0, 8), *every(0.5, 8, 10), *every(0.1, 11.5, 20)]
    rows = ((7.0, 10**6, 0.5), (7.5, 10**6, 1.0), (9.0, 10**6, 2.0), (11.0, 10**6, 4.0))
    cut = effects(tokens, (8.0, 10.0), acked=rows)["cut"]
    before = Phase(tokens_per_s=10.0, transfers=2, transfer_bps=12e6, ttft_s=0.1)
    during = Phase(tokens_per_s=2.0, transfers=1, transfer_bps=4e6, ttft_s=1.0)
    assert (cut.before, cut.during) == (before, during)
    assert cut.after.transfers == 1
    assert cut.kept_share == pytest.approx(0.2)
    assert cut.recovery_s == 1.5
    assert (cut.begin_s, cut.end_s) == (8.0, 10.0)


def test_an_instant_has_a_before_and_an_after_and_no_rate_of_its_own() -> None:
    cut = effects(every(0.1, 0, 20), (8.0, 8.000_000_001))["cut"]
    assert cut.during == Phase()
    assert cut.kept_share is None
    assert cut.before.tokens_per_s == cut.after.tokens_per_s == 10.0
    assert cut.recovery_s == 0.0


def test_a_fault_that_flaps_is_one() -> None:
    cut = effects(every(0.1, 0, 20), (5.0, 6.0), (8.0, 9.0))["cut"]
    assert (cut.begin_s, cut.end_s) == (5.0, 9.0)
    assert cut.recovery_s == 0.0


def test_one_that_stays_has_no_after_and_one_that_never_came_is_not_there() -> None:
    stays = effects(every(0.1, 0, 20), (5.0, None))["cut"]
    assert (stays.end_s, stays.after, stays.recovery_s) == (None, Phase(), None)
    assert effects(every(0.1, 0, 20), (5.0, 50.0))["cut"].end_s is None
    assert effects(every(0.1, 0, 20), (25.0, 26.0)) == {}


def test_what_never_comes_back_has_no_recovery() -> None:
    cut = effects(every(0.1, 0, 5), (5.0, 6.0))["cut"]
    assert cut.kept_share == 0.0
    assert cut.recovery_s is None


def test_a_fault_of_a_moment_is_compared_with_a_second() -> None:
    cut = effects(every(0.1, 0, 20), (5.0, 5.001))["cut"]
    assert cut.before.tokens_per_s == pytest.approx(10.0)
    assert cut.after.tokens_per_s == pytest.approx(10.0, rel=0.11)


def test_each_figure_is_held_against_the_one_before() -> None:
    rows = ((7.0, 10**6, 0.5), (9.0, 10**6, 1.0), (11.0, 10**6, 1.0), (11.5, 10**6, 0.5))
    cut = effects([*every(0.1, 0, 8), *every(0.5, 8, 10), *every(0.2, 10, 20)], (8.0, 10.0),
                  acked=rows)["cut"]  # fmt: skip
    assert cut.during_ratio.tokens_per_s == pytest.approx(0.2)
    assert cut.during_ratio.transfer_bps == pytest.approx(0.5)
    assert cut.during_ratio.ttft == pytest.approx(10)
    assert cut.after_ratio.tokens_per_s == pytest.approx(0.5)
    assert cut.after_ratio.ttft == pytest.approx(1)


def test_transfers_recover_with_the_first_new_one_at_the_speed_of_before() -> None:
    before, during = (7.0, 10**6, 0.5), (9.5, 10**6, 1.0)
    old = (10.4, 10**8, 0.5)  # began in the fault: as fast as it may be, it is none of after
    slow, back = (11.0, 10**6, 0.6), (12.0, 10**6, 0.55)
    cut = effects([], (8.0, 10.0), acked=(before, during, old, slow, back))["cut"]
    assert cut.transfer_recovery_s == pytest.approx(2.0)
    assert effects([], (8.0, 10.0), acked=(before, during, slow))["cut"].transfer_recovery_s is None


def test_it_says_whether_transfers_are_slower_after_the_fault_than_during_it() -> None:
    before, during = (7.0, 10**6, 0.5), (9.5, 10**6, 1.0)
    worse = effects([], (8.0, 10.0), acked=(before, during, (11.9, 10**6, 1.6)))["cut"]
    better = effects([], (8.0, 10.0), acked=(before, during, (11.9, 10**6, 0.5)))["cut"]
    assert worse.after_over_during == pytest.approx(1 / 1.6)
    assert better.after_over_during == pytest.approx(2)
    assert effects([], (8.0, 10.0), acked=(before, during))["cut"].after_over_during is None
    assert effects([], (8.0, None), acked=(before, during))["cut"].after_over_during is None


@given(
    st.lists(st.floats(0, 30), max_size=50),
    st.floats(0, 25),
    st.floats(0.001, 10),
)
def test_whatever_happens_shares_and_times_are_possible(
    tokens: list[float], begin: float, length: float
) -> None:
    for cut in effects(tokens, (begin, begin + length), last_s=30).values():
        assert cut.kept_share is None or cut.kept_share >= 0
        assert cut.recovery_s is None or 0 <= cut.recovery_s <= 30
