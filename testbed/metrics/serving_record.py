"""The ``serving`` part of ``metrics.json``: routing, caches, relay decode, stages.

Counts and means are over the requests that arrived in the measuring window; hits are
blocks found over blocks asked for.
"""

from __future__ import annotations

from pydantic import Field

from testbed.contract.record import Record


class InstanceHits(Record):
    """What the prefix cache of one P or MD, or of an RLD that has one, found."""

    role: str
    requests: int
    asked_blocks: int
    matched_blocks: int
    hit: float | None = None


class Forecast(Record):
    """What the router believed that an instance holds, and what its cache found."""

    requests: int
    predicted_hit: float | None = None
    found_hit: float | None = None
    exact_fraction: float | None = None
    """Share of the requests for which both are the same number of blocks."""


class Parity(Record):
    """Whether P and MD hold the same: what is computed is what is sent."""

    p_hit: float | None = None
    md_hit: float | None = None
    """None where no prompt was matched at an MD."""
    rld_hit: float | None = None
    """None where RLD has no cache, or none was asked."""
    gap: float | None = None
    """|p_hit - md_hit|, each over all the role's matches."""
    unequal_fraction: float | None = None
    """Share of requests matched at both whose two matches differ."""


class OutputRate(Record):
    """Tokens per second of one answer around its handoff, as columns over bins of time."""

    at_s: tuple[float, ...] = ()
    """Middle of each bin, from the first token of MD at the client."""
    tokens_per_s: tuple[float | None, ...] = ()
    """Mean over the answers that were under way for the whole bin; None where none was."""
    answers: tuple[int, ...] = ()
    """How many those are."""


class QueueWait(Record):
    """From queued at P to the start of the first prefill pass."""

    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None


class Stages(Record):
    """Mean times of the stages of one pipeline, over the requests that went through each.

    They overlap: RLD decodes while the transfer to MD runs.
    """

    requests: int
    prefill_queue_s: float | None = None
    prefill_s: float | None = None
    connection_wait_s: float | None = None
    transfer_s: float | None = None
    """To MD, from connection acquired to final acknowledgement."""
    eager_s: float | None = None
    """First RLD token at the client to KV on MD's device; 0 where the KV was there first."""
    handoff_s: float | None = None
    """KV on MD's device to MD's first token leaving."""


class TokenIds(Record):
    """What RLD told MD: the ids of its tokens, as messages over the WAN.

    Bytes are those of the messages, without the headers of ZeroMQ, TCP and IP.
    """

    requests: int
    tokens: int
    bytes: int
    bytes_per_token: float | None = None
    request_p50_bytes: float | None = None
    request_p99_bytes: float | None = None


class Preempted(Record):
    """Sequences of one RLD or MD that lost their device memory to older ones."""

    preemptions: int
    requests: int
    """Requests that it happened to."""
    recomputed_tokens: int
    """Output tokens that were computed again."""


class Serving(Record):
    """All figures of the serving plane."""

    pipelines: dict[str, int]
    reasons: dict[str, dict[str, int]]
    """Pipeline, the router's reason for it, requests."""
    unrouted: int
    """Requests of the window that no router sent anywhere."""
    instances: dict[str, InstanceHits]
    parity: Parity
    forecast_p: Forecast
    forecast_md: Forecast
    token_ids: TokenIds | None = None
    """None without RLD."""
    preemptions: int = 0
    """Over all RLD and MD."""
    preempted: dict[str, Preempted] = Field(default_factory=dict)
    """Instances where there was any."""
    handoffs_by_mode: dict[str, int]
    """Answers that RLD began and MD went on with; the others ended at RLD, or never began there."""
    rld_peak: int | None = None
    """Most requests whose KV one RLD held at once, at any time of the run."""
    queue_wait: QueueWait
    stages: dict[str, Stages]
    otps: OutputRate
