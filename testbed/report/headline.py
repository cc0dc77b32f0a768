"""The figures at the top of a run's page: what a reader must not miss, failures among them."""

from __future__ import annotations

from testbed.contract.record import Record
from testbed.report import wording
from testbed.report.summary import RunSummary


class Tile(Record):
    """One figure with its label; ``detail`` says of what, or over what, in small letters."""

    label: str
    value: str
    detail: str = ""


def tiles(run: RunSummary) -> tuple[Tile, ...]:
    """First tokens, failures, the busiest link, transfers, the pool."""
    done = wording.count(run.metric("ttft.requests"))
    of = "" if run.metrics is None else f"over {done} completed requests"
    return (
        _failed(run),
        Tile(
            label="First token, median",
            value=wording.seconds(run.metric("ttft.p50_s")),
            detail=of,
        ),
        Tile(
            label="First token, 90th percentile",
            value=wording.seconds(run.metric("ttft.p90_s")),
            detail=of,
        ),
        _busiest(run),
        Tile(label="Transfer, median", value=wording.seconds(run.metric("transfer.p50_s"))),
        Tile(
            label="Transfer, 99th percentile",
            value=wording.seconds(run.metric("transfer.p99_s")),
        ),
        Tile(label="Pool in use", value=wording.share(run.metric("pool.utilization"))),
        _wait(run),
    )


def counted(reasons: dict[str, float]) -> str:
    """Reasons with their counts, the most frequent first."""
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason} {wording.count(count)}" for reason, count in ordered)


def dropped(run: RunSummary) -> float | None:
    """Packets that a full or lossy link dropped in the window, all links together."""
    drops = [count for name, count in _links(run).items() if name.endswith(".drops")]
    return sum(drops) if drops else None


def _failed(run: RunSummary) -> Tile:
    failed, offered = run.metric("requests.failed"), run.metric("requests.offered")
    label = "Failed requests"
    if run.metrics is None or failed is None:
        return Tile(label=label, value=wording.NOTHING)
    reasons = counted(run.metrics.below("requests.failed_by_reason"))
    value = f"{wording.count(failed)} of {wording.count(offered)}"
    whole = run.verdict.requests if run.verdict is not None else None
    if whole is not None and (whole.failed, whole.asked) != (failed, offered):
        scope = f"in the window; {whole.failed:,} of {whole.asked:,} in the whole run"
        reasons = f"{reasons}; {scope}" if reasons else scope
    return Tile(label=label, value=value, detail=reasons)


def _busiest(run: RunSummary) -> Tile:
    window, whole = _highest(run, ".utilization"), _highest(run, ".run_utilization")
    label = "Busiest link, in the window"
    if window is None:
        return Tile(label=label, value=wording.NOTHING)
    detail = window[0]
    if whole is not None:
        other = f" ({whole[0]})" if whole[0] != window[0] else ""
        detail += f"; whole run {wording.share(whole[1])}{other}"
    return Tile(label=label, value=wording.share(window[1]), detail=detail)


def _highest(run: RunSummary, ending: str) -> tuple[str, float] | None:
    found = {
        name.removesuffix(ending): value
        for name, value in _links(run).items()
        if name.endswith(ending)
    }
    return max(found.items(), key=lambda item: item[1], default=None)


def _links(run: RunSummary) -> dict[str, float]:
    return {} if run.metrics is None else run.metrics.below("link")


def _wait(run: RunSummary) -> Tile:
    label = "Wait for a connection, 99th percentile"
    wait, refused = run.metric("pool.wait_p99_s"), run.metric("pool.refused")
    if run.metrics is None or refused is None:
        return Tile(label=label, value=wording.seconds(wait))
    detail = f"{wording.count(run.metric('pool.waits'))} waits, none refused"
    if refused:
        reasons = counted(run.metrics.below("pool.refused_by_reason"))
        detail = f"{wording.count(run.metric('pool.waits'))} waits, refused: {reasons}"
    return Tile(label=label, value=wording.seconds(wait), detail=detail)
