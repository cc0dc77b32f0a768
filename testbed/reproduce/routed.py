"""What a run's router did, as measures."""

from __future__ import annotations

from testbed.reproduce.outcome import RunOutcome


def pipelines(run: RunOutcome) -> dict[str, float]:
    """Requests by pipeline; empty for a run without a router."""
    return run.metrics.below("serving.pipelines")


def relayed_share(run: RunOutcome) -> float | None:
    """Share of the routed requests that went through RLD."""
    counts = pipelines(run)
    total = sum(counts.values())
    return sum(n for name, n in counts.items() if "RLD" in name) / total if total else None


def gap_share(run: RunOutcome) -> float | None:
    """How far the hits of P and MD lie apart."""
    return run.number("serving.parity.gap")


def request_bytes(run: RunOutcome) -> float | None:
    """Bytes to MD, a completed request."""
    done, total = run.number("requests.completed"), run.number("transfer.bytes")
    return total / done if done and total is not None else None


def turned_away(run: RunOutcome) -> float | None:
    """Requests that a full RLD turned away; 0 where a router gives no such reason."""
    if not pipelines(run):
        return None
    return run.metrics.below("serving.reasons.P-MD").get("relay-full", 0.0)
