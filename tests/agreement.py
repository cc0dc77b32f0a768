"""One scenario under both clocks and in both labs: what is compared, and how far it may lie apart.

docs/fidelity.md has the figures that were seen.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

HANDED_OFF = (
    "--set", "links.wan.rtt=200 ms",
    "--set", "serving.pipeline.threshold=100 %",
    "--set", "workload.output.tokens=160 tokens",
)  # fmt: skip
"""For ``pdd-hello``: so far away that the gap of a handoff is a stall, and every request goes
through RLD and is handed off, so that all runs compare the same requests."""
SMALL = {
    "transfer.p50_s": 0.2, "pool.utilization": 0.25, "stall.p50_s": 0.15, "stall.max_s": 0.2,
    "handoff.gap_p50_s": 0.15,
}  # fmt: skip
"""How far two runs at a small scale may lie apart, whatever their clock and lab."""
EXACT = 0.01
"""How far the two labs may lie apart at full size under the virtual clock."""


def figure(metrics: Mapping[str, object], name: str) -> float:
    """The figure ``group.key`` of a metrics.json."""
    group, key = name.split(".")
    part = metrics[group]
    assert isinstance(part, dict)
    value = part[key]
    assert isinstance(value, float | int)
    return value


def agree(seen: Mapping[str, object], meant: Mapping[str, object]) -> None:
    """Asserts that two runs with ``HANDED_OFF`` agree."""
    for metrics in (seen, meant):
        assert figure(metrics, "handoff.count") >= 14
        assert figure(metrics, "stall.count") >= 8
    for name, band in SMALL.items():
        assert figure(seen, name) == pytest.approx(figure(meant, name), rel=band), name
