"""Whatever happens, each delay's time is given out once, and what is counted is what was late."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.metrics.attribution import Attribution
from testbed.metrics.attribution.attribute import WRITTEN_MAX
from testbed.metrics.compute import compute
from tests.fakes.delayed_run import (
    asked,
    explained,
    in_force,
    landed,
    on_link,
    pausing,
    sampled,
    sent,
    steady,
    tokens,
)
from tests.fakes.hand_run import Told
from tests.fakes.serving_run import serving_story, write_serving_run

pytestmark = pytest.mark.unit
FAULTS = (on_link("cut-1"), on_link("cut-2", link="wan2"), pausing("gc", "md1"))
SUBJECTS = ("wan1", "wan2", "md1")

Steps = st.lists(st.integers(1, 900), min_size=10, max_size=10)
Force = st.tuples(st.integers(0, 2), st.integers(1_000, 3_000), st.integers(1, 900))
Sample = st.tuples(
    st.sampled_from(("wan1", "wan2")), st.integers(11, 40), st.integers(0, 1_000_000),
    st.integers(0, 3), st.integers(0, 900_000),
)  # fmt: skip


def history(req: int, steps: list[int], conn: int, retrans: int) -> list[Told]:
    """A request with milestones in order, at random times."""
    at = [1_000]
    for step in steps:
        at.append(at[-1] + step)
    return [
        *asked(req, at[0], at[2] + 3, at[1] + 3),
        *tokens(req, "r1", 0, at[2] + 4),
        *sent(req, at[3] + 4, at[4] + 4, at[5] + 4, conn, retrans=retrans),
        *landed(req, at[6] + 4, at[7] + 4, at[8] + 4),
        *tokens(req, "md1", 1, *steady(at[8] + 5, 3), at[9] + 50, at[10] + 51),
    ]


def hold(found: Attribution) -> None:
    """What must be true of every account."""
    lists = (found.stalls, found.first_tokens, found.transfers)
    roots = (found.causes.stalls, found.causes.first_tokens, found.causes.transfers)
    for delays, counted in zip(lists, roots, strict=True):
        assert len(delays) == min(counted.examined, WRITTEN_MAX)
        assert sum(counted.by_cause.values()) == counted.examined <= counted.count
        assert counted.by_cause.get("fault", 0) == sum(counted.by_fault.values())
        assert list(delays) == sorted(delays, key=lambda one: -one.length_s)
        if counted.count <= WRITTEN_MAX:
            assert Counter(one.root for one in delays) == counted.by_cause
            assert sum(one.unexplained_s for one in delays) == pytest.approx(counted.unexplained_s)
        for one in delays:
            assert sum(one.waits.values()) == pytest.approx(one.length_s)
            given_out = sum(share.seconds for share in one.shares) + one.unexplained_s
            assert given_out == pytest.approx(one.length_s)
            assert -1e-9 <= one.unexplained_s <= one.length_s + 1e-9
            assert all(0 <= link.share <= 1 and link.begin_s <= link.end_s for link in one.chain)
            assert (one.root == "fault") == bool(one.fault)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(Steps, st.integers(0, 7), st.integers(0, 2)), min_size=1, max_size=4),
    st.lists(Force, max_size=4),
    st.lists(Sample, max_size=12),
)
def test_each_moment_of_a_delay_is_given_out_once(
    requests: list[tuple[list[int], int, int]],
    forces: list[tuple[int, int, int]],
    samples: list[tuple[str, int, int, int, int]],
) -> None:
    events: list[Told] = []
    for req, (steps, conn, retrans) in enumerate(requests):
        events += history(req, steps, conn, retrans)
    for which, begin, length in forces:
        events += in_force(FAULTS[which].name, SUBJECTS[which], begin, begin + length)
    for link, number, size, drops, backlog in samples:
        events.append(sampled(link, number * 100, size, drops=drops, backlog=backlog))
    with tempfile.TemporaryDirectory() as folder:
        hold(explained(Path(folder) / "run", events, *FAULTS))


def test_causes_that_follow_each_other_share_one_delay(tmp_path: Path) -> None:
    """A pool that is too small, then an outage, then device memory."""
    events = [
        *asked(0, 1_000, 1_150), *tokens(0, "r1", 0, *steady(1_200, 8)),
        *sent(1, 1_100, 1_100, 1_640), *sent(0, 1_150, 1_640, 2_100, retrans=3),
        *landed(0, 2_300, 2_320, 2_330), *tokens(0, "md1", 8, 2_340),
        *in_force("cut-1", "wan1", 1_700, 1_900), *in_force("cut-2", "wan2", 1_700, 1_900),
    ]  # fmt: skip
    (one,) = explained(tmp_path / "run", events, *FAULTS).stalls
    shares: Counter[str] = Counter()
    for share in one.shares:
        shares[share.cause] += share.seconds  # type: ignore[assignment]
    assert shares["fault"] == pytest.approx(0.4, abs=0.01)  # to the end of the transfer
    assert shares["pool"] == pytest.approx(0.3, abs=0.01)
    assert shares["memory"] == pytest.approx(0.2, abs=0.01)
    assert one.root == "fault"
    assert [share.share for share in one.shares] == sorted(
        (share.share for share in one.shares), reverse=True
    )


def test_as_many_stalls_are_counted_as_the_metric_counts(tmp_path: Path) -> None:
    metrics = compute(write_serving_run(tmp_path / "run", serving_story()))
    stall, causes = metrics["stall"], metrics["causes"]
    assert isinstance(stall, dict)
    assert isinstance(causes, dict)
    counted = causes["stalls"]
    assert isinstance(counted, dict)
    assert counted["count"] == stall["count"]


def test_a_run_without_any_token_has_nothing_to_explain(tmp_path: Path) -> None:
    hold(explained(tmp_path / "run", asked(0, 1_000, 1_150)))
