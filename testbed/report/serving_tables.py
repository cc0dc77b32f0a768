"""The tables of the serving plane: routes, caches, stages, handoffs, bytes."""

from __future__ import annotations

from collections.abc import Callable

from testbed.metrics.serving_record import Forecast, Serving, Stages
from testbed.report import wording
from testbed.report.summary import RunSummary
from testbed.report.table import Table

_STAGES: tuple[tuple[str, Callable[[Stages], float | None]], ...] = (
    ("Queue at P", lambda stages: stages.prefill_queue_s),
    ("Prefill", lambda stages: stages.prefill_s),
    ("Wait for a connection", lambda stages: stages.connection_wait_s),
    ("Transfer to MD", lambda stages: stages.transfer_s),
    ("RLD decodes until MD has the KV", lambda stages: stages.eager_s),
    ("KV on MD's device to its first token", lambda stages: stages.handoff_s),
)
_KINDS = {
    "kv": "KV to MD, beyond what it holds",
    "kv-relay": "KV of full contexts, P to RLD",
    "kv-increment": "KV of RLD's own tokens, RLD to MD",
    "token-ids": "Ids of RLD's tokens, RLD to MD",
}


def serving_tables(run: RunSummary, serving: Serving) -> tuple[Table, ...]:
    """All tables of the section."""
    return (
        routes_table(serving),
        hits_table(serving),
        forecast_table(serving),
        stages_table(serving),
        handoff_table(run, serving),
        bytes_table(run),
        memory_table(serving),
        service_table(run),
    )


def routes_table(serving: Serving) -> Table:
    """The split of the requests by pipeline, with the router's reasons."""
    total = sum(serving.pipelines.values()) + serving.unrouted
    rows = [
        (pipeline, reason, wording.count(count), wording.share(count / total))
        for pipeline, reasons in serving.reasons.items()
        for reason, count in reasons.items()
    ]
    if serving.unrouted:
        rows.append(
            ("none", "not routed", wording.count(serving.unrouted),
             wording.share(serving.unrouted / total))
        )  # fmt: skip
    return Table(
        caption="Which pipeline the router chose, and why",
        head=("pipeline", "reason", "requests", "share"),
        rows=tuple(rows),
        worded=(1,),
    )


def hits_table(serving: Serving) -> Table:
    """Hits of each instance, and the parity of both sides."""
    rows = [
        (name, one.role, wording.count(one.requests), wording.count(one.matched_blocks),
         wording.count(one.asked_blocks), wording.share(one.hit))
        for name, one in serving.instances.items()
    ]  # fmt: skip
    return Table(
        caption="What each prefix cache found, in blocks",
        head=("instance", "role", "requests", "found", "asked", "hit"),
        rows=tuple(rows),
        worded=(1,),
        notes=(_parity(serving),),
    )


def _parity(serving: Serving) -> str:
    parity = serving.parity
    relay = "" if parity.rld_hit is None else f", RLD {wording.share(parity.rld_hit)}"
    if parity.md_hit is None:
        relay = relay or ", RLD has no cache"
        return (
            f"P finds {wording.share(parity.p_hit)}{relay}. No prompt was matched at an MD, so "
            "there is no parity to speak of."
        )
    return (
        f"P finds {wording.share(parity.p_hit)}, MD {wording.share(parity.md_hit)}{relay}: "
        f"a parity gap of {wording.share(parity.gap)} between P and MD. Their matches differ for "
        f"{wording.share(parity.unequal_fraction)} of the requests."
    )


def forecast_table(serving: Serving) -> Table:
    """The router's picture of the caches against what they found."""

    def row(side: str, forecast: Forecast) -> tuple[str, ...]:
        return (
            side,
            wording.count(forecast.requests),
            wording.share(forecast.predicted_hit),
            wording.share(forecast.found_hit),
            wording.share(forecast.exact_fraction),
        )

    return Table(
        caption="What the router predicted, and what the caches found",
        head=("cache", "requests", "predicted hit", "found hit", "exact"),
        rows=(row("P", serving.forecast_p), row("MD", serving.forecast_md)),
    )


def stages_table(serving: Serving) -> Table:
    """Mean time of each stage, pipeline by pipeline."""
    pipelines = tuple(serving.stages.items())
    wait = serving.queue_wait
    return Table(
        caption="Where the time of a request went, means",
        head=(
            "stage",
            *(f"{name} ({wording.count(stages.requests)})" for name, stages in pipelines),
        ),
        rows=tuple(
            (label, *(wording.seconds(time(stages)) for _, stages in pipelines))
            for label, time in _STAGES
        ),
        notes=(
            "RLD decodes while the transfer to MD runs; the stages do not add up.",
            f"Queue at P: median {wording.seconds(wait.p50_s)}, 90th percentile "
            f"{wording.seconds(wait.p90_s)}, 99th {wording.seconds(wait.p99_s)}.",
        ),
    )


def handoff_table(run: RunSummary, serving: Serving) -> Table:
    """Relay decode and how its answers passed on: every answer that RLD shares is in one row."""
    limit = wording.seconds(run.metric("stall.threshold_s"))
    return Table(
        caption="Relay decode and handoff",
        head=("quantity", "value"),
        rows=(
            *_shared(run, serving),
            ("Most requests at one RLD", wording.count(serving.rld_peak)),
            ("Share of tokens from RLD", wording.share(run.metric("rld.token_share"))),
            ("Eager tokens, mean", wording.count(run.metric("handoff.eager_tokens_mean"))),
            ("Catch-up tokens, mean", wording.count(run.metric("handoff.catchup_tokens_mean"))),
            *_told(serving),
            ("KV on MD's device to MD's first token, median",
             wording.seconds(run.metric("handoff.p50_s"))),
            ("Gap at the client from RLD's last to MD's first token, median",
             wording.seconds(run.metric("handoff.gap_p50_s"))),
            ("The same gap, longest", wording.seconds(run.metric("handoff.gap_max_s"))),
            (f"Stalls at the client (gaps above {limit})",
             wording.count(run.metric("stall.count"))),
            ("Longest stall", wording.seconds(run.metric("stall.max_s"))),
        ),
        notes=(
            "A stall is a gap between two tokens at the client above 200 ms and above five times "
            "the median time per output token.",
        ),
    )  # fmt: skip


def _shared(run: RunSummary, serving: Serving) -> list[tuple[str, str]]:
    """Requests on a route over RLD and MD, by who ended their answers."""
    routed = serving.pipelines.get("P-RLD-MD", 0)
    modes = ", ".join(f"{count} {mode}" for mode, count in serving.handoffs_by_mode.items())
    handed = run.metric("handoff.count") or 0
    alone, empty = run.metric("handoff.ended_at_rld") or 0, run.metric("handoff.empty") or 0
    rows = [
        ("Requests on a route over RLD and MD", wording.count(routed)),
        ("Handed over from RLD to MD", modes or wording.count(handed)),
        ("Ended by RLD itself", wording.count(alone)),
    ]
    if empty:
        rows.append(("Answered by MD before RLD had a token", wording.count(empty)))
    rest = routed - handed - alone - empty
    if rest > 0:
        rows.append(("Not answered, or answered by another attempt", wording.count(rest)))
    return rows


def _told(serving: Serving) -> tuple[tuple[str, str], ...]:
    ids = serving.token_ids
    if ids is None:
        return ()
    each = "n/a" if ids.bytes_per_token is None else f"{wording.digits(ids.bytes_per_token)} B"
    return (
        ("Token ids that RLD told MD", wording.count(ids.tokens)),
        ("Bytes of a message per id", each),
        ("Bytes of ids per request, 99th percentile", wording.size(ids.request_p99_bytes)),
    )


def memory_table(serving: Serving) -> Table:
    """Preemptions, instance by instance."""
    rows = [
        (name, wording.count(one.preemptions), wording.count(one.requests),
         wording.count(one.recomputed_tokens))
        for name, one in serving.preempted.items()
    ]  # fmt: skip
    together = (
        sum(one.requests for one in serving.preempted.values()),
        sum(one.recomputed_tokens for one in serving.preempted.values()),
    )
    total = ("together", wording.count(serving.preemptions), *map(wording.count, together))
    return Table(
        caption="Sequences that were preempted for want of device memory",
        head=("instance", "times", "requests", "tokens again"),
        rows=(*rows, total),
        notes=("Tokens again: output that was computed a second time.",),
    )


def service_table(run: RunSummary) -> Table:
    """The service level and what its goodput costs."""
    cost = run.plan.cost
    rows = [
        (
            f"Requests with a first token within {wording.seconds(run.metric('sla.ttft_s'))}",
            wording.share(run.metric("sla.ttft_share")),
        ),
        (
            f"Requests within {wording.seconds(run.metric('sla.tpot_s'))} per output token",
            wording.share(run.metric("sla.tpot_share")),
        ),
        ("Answers that keep both, per second", wording.count(run.metric("goodput_rps"))),
    ]
    if cost is not None:
        rows += [
            (f"Cost of all nodes, unit: {cost.unit}", wording.digits(cost.total)),
            ("Benefit-cost ratio", wording.quantity("bcr", run.metric("bcr"))),
        ]
    return Table(
        caption="Service level, goodput and cost",
        head=("quantity", "value"),
        rows=tuple(rows),
        notes=("Shares are of the requests offered in the window; the level is 90 % of each.",),
    )


def bytes_table(run: RunSummary) -> Table:
    """Payload bytes acknowledged for the window's requests; of failed ones nobody knows."""
    sizes = {} if run.metrics is None else run.metrics.below("transfer.bytes_by_kind")
    return Table(
        caption="Payload by kind",
        head=("kind", "bytes"),
        rows=tuple((_KINDS.get(kind, kind), wording.size(n)) for kind, n in sizes.items()),
        notes=(
            "Of completed transfers. How much of a failed one had been sent no event says; there "
            f"were {wording.count(run.metric('transfer.failed'))}.",
        ),
    )
