"""Names of metrics.json that a bound of ``expect.metrics`` may use.

Metrics lie in a room above this one, so their names stand here a second time; a unit
test holds this list against ``testbed.metrics.record.Metrics``.
"""

from __future__ import annotations

import re

METRICS: tuple[str, ...] = (
    "requests.offered", "requests.completed", "requests.failed",
    "transfer.p50_s", "transfer.p90_s", "transfer.p99_s", "transfer.mean_s", "transfer.bytes",
    "transfer.failed", "transfer.retransmits",
    "pool.size", "pool.utilization", "pool.queue_wait_mean_s", "pool.queue_wait_p99_s",
    "pool.waits", "pool.wait_mean_s", "pool.wait_p50_s", "pool.wait_p90_s", "pool.wait_p99_s",
    "pool.wait_max_s", "pool.refused", "pool.exhausted_fraction",
    "pool.occupancy_mean", "pool.occupancy_little",
    "pool.opened", "pool.open_peak", "pool.opening_mean_s",
    "ttft.p50_s", "ttft.p90_s", "ttft.p99_s", "ttft.requests", "ttft.failed_requests",
    "ttft.failed_p50_s", "ttft.failed_p90_s", "tpot.p50_s", "tpot.p90_s",
    "gap.count", "gap.p50_s", "gap.p90_s", "gap.p99_s", "gap.max_s", "stall.threshold_s",
    "stall.p50_s", "stall.p99_s", "stall.max_s", "stall.count",
    "handoff.count", "handoff.p50_s", "handoff.p99_s", "handoff.gap_p50_s",
    "handoff.gap_p99_s", "handoff.gap_max_s", "handoff.empty", "handoff.ended_at_rld",
    "handoff.eager_tokens_mean",
    "handoff.catchup_tokens_mean",
    "cache.p_hit", "cache.md_hit", "rld.token_share", "rld.output_tokens_mean",
    "serving.unrouted", "serving.rld_peak",
    "serving.parity.p_hit", "serving.parity.md_hit", "serving.parity.rld_hit", "serving.parity.gap",
    "serving.parity.unequal_fraction",
    *(f"serving.forecast_{side}.{name}" for side in ("p", "md")
      for name in ("requests", "predicted_hit", "found_hit", "exact_fraction")),
    "serving.queue_wait.p50_s", "serving.queue_wait.p90_s", "serving.queue_wait.p99_s",
    *(f"causes.{what}.{name}" for what in ("stalls", "first_tokens", "transfers")
      for name in ("count", "examined", "total_s", "unexplained_s")),
    "goodput_rps", "sla.ttft_share", "sla.tpot_share", "bcr",
    "oracle.p50_s", "oracle.p99_s", "oracle.queue_wait_mean_s", "offered_load",
)  # fmt: skip

PIPELINES = ("P-MD", "P-RLD-MD", "P-RLD")
_PIPELINE = f"({'|'.join(PIPELINES)})"
_WORD = "[a-z0-9-]{1,40}"
LINK_METRIC = re.compile(
    r"link\.[a-z0-9-]{1,20}\.(utilization|run_utilization|drops|backlog_max_bytes)"
)
INSTANCE_METRIC = re.compile(
    r"serving\.instances\.[a-z0-9-]{1,20}\.(requests|asked_blocks|matched_blocks|hit)"
)
FAULT_METRIC = re.compile(
    r"faults\.[a-z0-9-]{1,40}\.(kept_share|recovery_s|transfer_recovery_s|after_over_during|"
    r"(before|during|after)\.(tokens_per_s|transfers|transfer_bps|ttft_s)|"
    r"(during|after)_ratio\.(tokens_per_s|transfer_bps|ttft))"
)
CAUSE_METRIC = re.compile(
    r"causes\.(stalls|first_tokens|transfers)\.(by_(cause|fault)\.[a-z0-9-]{1,40}"
    r"|by_subject\.[a-z0-9>-]{1,40}( forward| backward)?)"
)
_PATTERNS = (
    LINK_METRIC,
    FAULT_METRIC,
    CAUSE_METRIC,
    INSTANCE_METRIC,
    re.compile(rf"serving\.pipelines\.{_PIPELINE}"),
    re.compile(rf"serving\.reasons\.{_PIPELINE}\.{_WORD}"),
    re.compile(
        rf"serving\.stages\.{_PIPELINE}\.(requests|prefill_queue_s|prefill_s|connection_wait_s|"
        r"transfer_s|eager_s|handoff_s)"
    ),
    re.compile(rf"serving\.handoffs_by_mode\.{_WORD}"),
    re.compile(rf"pool\.(refused|closed)_by_reason\.{_WORD}"),
    re.compile(r"transfer\.bytes_by_kind\.[a-z_-]{1,40}"),
)
"""Parts whose names follow from the run: links, instances, pipelines."""
EXAMPLES: tuple[str, ...] = (
    *METRICS, "link.<name>.utilization", "faults.<name>.recovery_s", "serving.instances.<name>.hit",
    *(f"serving.pipelines.{name}" for name in PIPELINES),
)  # fmt: skip
_OF_THE_PLANE = re.compile(r"(serving|handoff|rld|sla)\.|goodput_rps$|bcr$")


def is_metric(name: str) -> bool:
    """Whether a run can have a metric of this name."""
    return name in METRICS or any(pattern.fullmatch(name) for pattern in _PATTERNS)


def needs_serving(name: str) -> bool:
    """Whether only runs with a serving plane have it."""
    return _OF_THE_PLANE.match(name) is not None


def counts_bytes(name: str) -> bool:
    """Whether it is an amount of bytes."""
    return name.endswith("bytes") or ".bytes_by_kind." in name
