"""One scenario under both clocks and in both labs: what is compared, and how far it may lie apart.

docs/fidelity.md has the figures that were seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

import pytest

Metrics = Mapping[str, object]

HANDED_OFF = (
    "--set", "links.wan.rtt=200 ms",
    "--set", "serving.pipeline.threshold=100 %",
    "--set", "workload.output.tokens=160 tokens",
)  # fmt: skip
"""For ``pdd-hello``: so far away that the gap of a handoff is a stall, and every request goes
through RLD and is handed off, so that all runs compare the same requests."""
SMALL = {
    "transfer.p50_s": 0.2, "pool.utilization": 0.25, "stall.p50_s": 0.15,
    "handoff.gap_p50_s": 0.15,
}  # fmt: skip
"""How far two runs at a small scale may lie apart, whatever their clock and lab. No longest stall:
it is one moment of a run, and under the real clock that moment may be the machine's."""
EXACT = 0.01
"""How far the two labs may lie apart at full size under the virtual clock."""
MOST_LIVE_RUNS = 3


def figure(metrics: Metrics, name: str) -> float:
    """The figure ``group.key`` of a metrics.json."""
    group, key = name.split(".")
    part = metrics[group]
    assert isinstance(part, dict)
    value = part[key]
    assert isinstance(value, float | int)
    return value


def agree(seen: Metrics, meant: Metrics) -> None:
    """Asserts that two runs with ``HANDED_OFF`` agree."""
    for metrics in (seen, meant):
        _assert_comparable(metrics)
    assert not _apart([seen], meant)


def agree_live(run: Callable[[int], Metrics], meant: Metrics) -> None:
    """Asserts that a live run agrees with a virtual one; where it does not, the median of three.

    A run that was late is invalid and never gets here; one stall of the machine that stays below
    that bound still moves a median of sixteen handoffs.

    Args:
        run: makes the live run of that number, from 1, and gives its metrics.
    """
    _assert_comparable(meant)
    seen: list[Metrics] = []
    while len(seen) < MOST_LIVE_RUNS:
        seen.append(run(len(seen) + 1))
        _assert_comparable(seen[-1])
        if len(seen) != 2 and not _apart(seen, meant):
            return
    assert not _apart(seen, meant)


def _assert_comparable(metrics: Metrics) -> None:
    assert figure(metrics, "handoff.count") >= 14
    assert figure(metrics, "stall.count") >= 8


def _apart(seen: list[Metrics], meant: Metrics) -> dict[str, tuple[list[float], float]]:
    """The figures whose median lies outside its band: what was seen, and what was meant."""
    found = {name: [figure(one, name) for one in seen] for name in SMALL}
    return {
        name: (values, figure(meant, name))
        for name, values in found.items()
        if median(values) != pytest.approx(figure(meant, name), rel=SMALL[name])
    }
