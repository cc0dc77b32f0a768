"""Metrics without a run: trees made by hand, or reduced from a fake run's record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from testbed.checks.metrics_file import MetricsFile
from testbed.report.summary import summarize


def metrics_of(tree: Mapping[str, object]) -> MetricsFile:
    """Return metrics that no file holds."""
    return MetricsFile(Path("metrics.json"), tree)


def pool_metrics(
    load: float = 1.04, exhausted: float = 0.0, wait: float = 0.0, used: float = 0.6
) -> MetricsFile:
    """Return the metrics that the pool finding looks at."""
    return metrics_of(
        {
            "offered_load": load,
            "pool": {
                "exhausted_fraction": exhausted,
                "queue_wait_mean_s": wait,
                "utilization": used,
            },
        }
    )


def write_rough_metrics(folder: Path) -> Path:
    """Write a ``metrics.json`` good enough to draw a report of a fake run."""
    run = summarize(folder)
    times = np.array([row.duration_s for row in run.transfers])
    waits = np.array([row.wait_s for row in run.transfers])
    ideal = np.array([row.duration_s for row in run.oracle or ()])
    seconds = run.pool.time_s
    inside = (seconds > run.window.begin_ns / 1e9) & (seconds < run.window.end_ns / 1e9)
    tree = {
        "requests": {"offered": len(times), "completed": len(times), "failed": 0},
        "transfer": {
            "p50_s": float(np.quantile(times, 0.5)),
            "p90_s": float(np.quantile(times, 0.9)),
            "p99_s": float(np.quantile(times, 0.99)),
            "mean_s": float(times.mean()),
        },
        "pool": {
            "size": run.pool_size,
            "utilization": float(run.pool.busy[inside].mean() / run.pool_size),
            "queue_wait_mean_s": float(waits.mean()),
            "queue_wait_p99_s": float(np.quantile(waits, 0.99)),
            "exhausted_fraction": float((run.pool.waiting[inside] > 0.5).mean()),
        },
        "stall": None,
        "oracle": {
            "p50_s": float(np.quantile(ideal, 0.5)),
            "p99_s": float(np.quantile(ideal, 0.99)),
            "queue_wait_mean_s": 0.0,
        },
        "offered_load": run.plan.offered.load,
        "timeline_sha256": "ab" * 32,
    }
    path = folder / "metrics.json"
    path.write_text(json.dumps(tree))
    return path
