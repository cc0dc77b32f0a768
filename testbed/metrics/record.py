"""``metrics.json``: names and units are a contract; None is "not measured in this run".

All figures are over the requests that arrived in the measuring window (no warm-up, no
drain) or over the window's time. Figures of parts that a run does not have are None.
"""

from __future__ import annotations

from pydantic import Field

from testbed.contract.record import Record
from testbed.metrics.attribution.record import Causes, Delay
from testbed.metrics.serving_record import Serving


class Requests(Record):
    """How requests ended. completed + failed = offered."""

    offered: int
    completed: int
    failed: int
    failed_by_reason: dict[str, int]
    """A request that was neither answered nor reported counts as ``unreported``."""


class Transfers(Record):
    """KV from P to MD, from connection acquired to final acknowledgement.

    Queueing is in ``pool``. Times and bytes are those of completed transfers: how much of a
    failed one had been sent no event says.
    """

    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    mean_s: float | None = None
    bytes: int = 0
    bytes_by_kind: dict[str, int] = Field(default_factory=dict)
    """``kv`` is ``bytes``; ``kv-relay`` P to RLD, ``kv-increment`` and ``token-ids`` RLD to MD."""
    failed: int = 0
    """Transfers that began and were not acknowledged."""
    retransmits: int = 0
    """TCP segments that were sent again during all these transfers, failed ones too."""


class PoolUse(Record):
    """The connection pools, over all (P, MD) pairs; those to and from RLD are left out."""

    size: int | None = None
    """Connections of one pair (N); None, as are utilization and exhaustion, without a bound."""
    utilization: float | None = None
    """Time average of connections in use over connections there are."""
    queue_wait_mean_s: float | None = None
    """Before acknowledged transfers only, as is the next."""
    queue_wait_p99_s: float | None = None
    waits: int = 0
    """Waits that ended, by a connection or by a refusal, whatever became of the transfer."""
    wait_mean_s: float | None = None
    """Over all of these, as are the next four."""
    wait_p50_s: float | None = None
    wait_p90_s: float | None = None
    wait_p99_s: float | None = None
    wait_max_s: float | None = None
    refused: int = 0
    """Transfers that got no connection; with ``queue-full`` they never waited for one."""
    refused_by_reason: dict[str, int] = Field(default_factory=dict)
    exhausted_fraction: float | None = None
    """Share of the window in which all N are in use and at least one transfer waits
    (mean over pairs)."""
    occupancy_mean: float | None = None
    """Connections in use, all pairs together, averaged over the window's time."""
    occupancy_little: float | None = None
    """Little's law for the same: acquisitions per second of the window times their mean
    holding time. Equal in a steady state; apart where the queue grows."""
    opened: int | None = None
    """Connections opened within the window; None, as is the peak, where they always stand."""
    open_peak: int | None = None
    """Most connections of one pair that were open at once within the window."""
    opening_mean_s: float | None = None
    """Time to open one; a part of the wait."""
    closed_by_reason: dict[str, int] = Field(default_factory=dict)
    """Those closed within the window: after-use, idle, broken, lost, closed."""


class FirstToken(Record):
    """Request sent to first token at the client, completed requests only."""

    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    requests: int = 0
    """Over how many these are taken."""
    failed_requests: int = 0
    """Requests that failed after the client had their first token; none of the above."""
    failed_p50_s: float | None = None
    """The same time of these."""
    failed_p90_s: float | None = None


class TokenTime(Record):
    """(last - first token) / (tokens - 1) of each completed request of 2 tokens or more."""

    p50_s: float | None = None
    p90_s: float | None = None


class TokenGaps(Record):
    """Between neighbouring tokens at the client, of all requests together, failed ones too."""

    count: int = 0
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    max_s: float | None = None


class Stalls(Record):
    """Gaps between tokens at the client longer than max(200 ms, 5 x median TPOT)."""

    threshold_s: float | None = None
    """What that is in this run."""

    p50_s: float | None = None
    p99_s: float | None = None
    max_s: float | None = None
    count: int = 0


class Handoffs(Record):
    """Handoffs from relay to main decode: answers that RLD began and MD went on with."""

    count: int | None = None
    p50_s: float | None = None
    """KV on MD's device to MD's first token, as MD sends it."""
    p99_s: float | None = None
    gap_p50_s: float | None = None
    """Last token of RLD to first one of MD, both at the client."""
    gap_p99_s: float | None = None
    gap_max_s: float | None = None
    eager_tokens_mean: float | None = None
    catchup_tokens_mean: float | None = None
    empty: int | None = None
    """Answers on a route over RLD and MD that MD took over before RLD had emitted a token."""
    ended_at_rld: int | None = None
    """Answers on such a route that RLD completed itself."""


class CacheHits(Record):
    """Emulated prompt tokens found in a cache over all prompt tokens."""

    p_hit: float | None = None
    """At the prefill side: what was not computed."""
    md_hit: float | None = None
    """At the decode side: what was not transferred."""


class RelayShare(Record):
    """What the relay decodes."""

    token_share: float | None = None
    output_tokens_mean: float | None = None


class ServiceLevel(Record):
    """The service level of the scenario, and how many of the offered requests keep it."""

    ttft_s: float
    tpot_s: float
    ttft_share: float | None = None
    """First token in time, over all requests offered; not answered is not in time."""
    tpot_share: float | None = None
    kept: bool | None = None
    """Whether both shares are at least 90 %, as the paper asks."""


class LinkUse(Record):
    """One link over the window. Utilisation is that of the busier direction."""

    utilization: float | None = None
    run_utilization: float | None = None
    """From the barrier to the last byte on this link, drain and all."""
    drops: int | None = None
    backlog_max_bytes: int | None = None


class Oracle(Record):
    """The same transfers over an ideal link (see ``testbed.oracle``)."""

    p50_s: float | None = None
    p99_s: float | None = None
    queue_wait_mean_s: float | None = None


class Phase(Record):
    """A stretch of the run beside or under a fault."""

    tokens_per_s: float | None = None
    """At all clients together."""
    transfers: int | None = None
    """Acknowledged in it, from P to MD."""
    transfer_bps: float | None = None
    """Median speed of these, payload bit/s from connection acquired to acknowledgement."""
    ttft_s: float | None = None
    """Median time to the first tokens that came in it."""


class Ratios(Record):
    """A phase beside the one before the fault: 1 is as before. None where either has none."""

    tokens_per_s: float | None = None
    transfer_bps: float | None = None
    ttft: float | None = None
    """The time itself: above 1 is worse."""


class FaultEffect(Record):
    """What one fault did (see ``testbed.metrics.recovery``)."""

    begin_s: float
    end_s: float | None = None
    """None: it stayed to the end."""
    before: Phase = Phase()
    during: Phase = Phase()
    after: Phase = Phase()
    kept_share: float | None = None
    """Tokens a second during it, as a share of those before."""
    recovery_s: float | None = None
    """From its end until tokens came at 90 % of the rate before, in steps of 0.5 s; None where
    they never did, or there were none before."""
    transfer_recovery_s: float | None = None
    """From its end until the first acknowledgement of a transfer that began after it and was at
    90 % of the median speed before; None likewise."""
    during_ratio: Ratios = Ratios()
    after_ratio: Ratios = Ratios()
    after_over_during: float | None = None
    """Median speed of transfers that began after it, over that of those that began during it.
    Below 1 they stay slower than under the fault."""


def _is_empty(faults: dict[str, FaultEffect]) -> bool:
    return not faults


class Metrics(Record):
    """The whole file."""

    requests: Requests
    transfer: Transfers
    pool: PoolUse
    ttft: FirstToken
    tpot: TokenTime
    gap: TokenGaps = TokenGaps()
    stall: Stalls
    handoff: Handoffs = Handoffs()
    cache: CacheHits
    rld: RelayShare = RelayShare()
    serving: Serving | None = None
    goodput_rps: float | None = None
    """Answers that keep the service level (see ``testbed.metrics.goodput``) per second."""
    sla: ServiceLevel | None = None
    bcr: float | None = None
    """Goodput over the cost of all nodes an hour, in the unit of the scenario's prices."""
    link: dict[str, LinkUse]
    faults: dict[str, FaultEffect] = Field(default_factory=dict, exclude_if=_is_empty)
    """By name; not there without faults."""
    causes: Causes = Causes()
    """Stalls, late first tokens and slow transfers, counted by what is at their root."""
    stalls: tuple[Delay, ...] = ()
    """The longest ones, at most 20, each with what explains it; so are the next two."""
    slow_first_tokens: tuple[Delay, ...] = ()
    slow_transfers: tuple[Delay, ...] = ()
    oracle: Oracle
    offered_load: float | None = None
    """Payload bytes that arrived in the window over what the legs carry in it; None in a
    closed loop."""
    timeline_sha256: str | None = None
    wall_s: float | None = None
    virtual_s: float | None = None
