"""What must show when pools are compared, seed by seed, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from testbed.reproduce.outcome import Outcomes, Values
from testbed.reproduce.poolway import FULL, LIGHT, NARROW, WIDE, label, ways
from testbed.reproduce.study import Claim, Judged

P50, P99, MEAN, SMALL = (
    "delivery.p50_s", "delivery.p99_s", "delivery.mean_s", "delivery.small_p90_s",
)  # fmt: skip
TRANSFER, REFUSED = "transfer.p50_s", "refused_share"
SEVERAL = 3.0
"""How many times a warm connection's time a fresh one takes at least. A public test of a KV
engine over 30 ms had 4.1 times the throughput with its pool as without."""
ALIKE = 0.1
SAME = 0.01
HALF = 0.5
TWICE = 2.0
SHORTER = 0.95

Asked = tuple[str, str, str, str, str]
"""Distribution, load, pool, the pool that it is compared with, measure."""


def _all_of(
    out: Outcomes, asked: Iterable[Asked], holds: Callable[[float], bool], wanted: str
) -> Judged:
    """How many times the other's value each has, on every common seed."""
    evidence: list[str] = []
    against: list[str] = []
    for hits, load, way, other, name in asked:
        own, base = label(hits, load, way), label(hits, load, other)
        times = out.paired(own, base, name, lambda value, peer: value / peer)
        what = f"{hits}, {name}, {way} over {other}"
        if not times:
            against.append(f"{what}: no seed has a faithful run of both")
            continue
        evidence.append(f"{what}: {_range(times)}")
        against.extend(
            f"{what}, seed {seed}: {value:.3g} times; {wanted}"
            for seed, value in times.items()
            if not holds(value)
        )
    return Judged("; ".join(evidence), against)


def _range(values: Values) -> str:
    low, high = min(values.values()), max(values.values())
    return f"{low:.3g}" if len(values) == 1 else f"{low:.3g} to {high:.3g}"


def _hits(out: Outcomes, load: str) -> tuple[str, ...]:
    return tuple(hits for hits in (WIDE, NARROW) if ways(out.extent, hits, load))


def without_costs(out: Outcomes) -> Judged:
    """On a line that is nearly idle, a fresh connection for each is several times as slow."""
    return _all_of(
        out, ((hits, LIGHT, "per-transfer", "lifo", P50) for hits in _hits(out, LIGHT)),
        lambda times: times >= SEVERAL, f"at least {SEVERAL:g} times wanted",
    )  # fmt: skip


def idle_is_cold(out: Outcomes) -> Judged:
    """160 connections in turn are each idle for long, and start as slowly as fresh ones."""
    return _all_of(
        out, ((WIDE, LIGHT, "fifo", "per-transfer", TRANSFER),),
        lambda times: abs(times - 1) <= ALIKE, f"within {ALIKE:.0%} wanted",
    )  # fmt: skip


def warm_is_not(out: Outcomes) -> Judged:
    """Without slow start after idle the same pool is as quick as the one used last first."""
    return _all_of(
        out, ((hits, LIGHT, "fifo", "fifo-warm", P50) for hits in _hits(out, LIGHT)),
        lambda times: times >= TWICE, f"at least {TWICE:g} times wanted",
    )  # fmt: skip


def lanes_refuse(out: Outcomes) -> Judged:
    """Four lanes with a second's patience turn away on a full line, and nobody else does."""
    evidence: list[str] = []
    against: list[str] = []
    for hits in _hits(out, FULL):
        for way in ways(out.extent, hits, FULL):
            values = out.of(label(hits, FULL, way.name), REFUSED)
            if way.name == "lanes":
                evidence.append(f"{hits}: {_range(values)} refused")
            for seed, share in values.items():
                if (share > 0.01) != (way.name == "lanes"):
                    against.append(f"{hits}, {way.words}, seed {seed}: {share:.1%} refused")
    if not evidence:
        against.append("no lanes were run")
    return Judged("; ".join(evidence), against)


def small_wait_less(out: Outcomes) -> Judged:
    """Smallest first takes the small out from behind the large, where sizes differ much."""
    return _all_of(
        out, ((WIDE, FULL, "few-small", "few", SMALL),),
        lambda times: times <= HALF, f"at most {HALF:g} times wanted",
    )  # fmt: skip


def preempting_helps(out: Outcomes) -> Judged:
    """A small transfer that may interrupt a large one need not wait for its end."""
    return _all_of(
        out, ((WIDE, FULL, "few-preempt", "few-small", SMALL),),
        lambda times: times <= SHORTER, f"at most {SHORTER:g} times wanted",
    )  # fmt: skip


def deadline_is_arrival(out: Outcomes) -> Judged:
    """P takes no time here, so the earliest deadline is the first to ask."""
    return _all_of(
        out,
        (
            (hits, FULL, "few-deadline", "few", name)
            for hits in _hits(out, FULL)
            for name in (P50, P99)
        ),
        lambda times: abs(times - 1) <= SAME, f"within {SAME:.0%} wanted",
    )  # fmt: skip


def full_line_hides(out: Outcomes) -> Judged:
    """Where the line is full, what a fresh connection costs is lost in the time it shares."""
    return _all_of(
        out, ((hits, FULL, "per-transfer", "lifo", MEAN) for hits in _hits(out, FULL)),
        lambda times: times < SEVERAL, f"less than {SEVERAL:g} times wanted",
    )  # fmt: skip


CLAIMS = (
    Claim("fresh-costs-several-fold",
          "On a nearly idle line the median delivery over a fresh connection takes at least three "
          "times that over the connection used last, for both distributions.", without_costs),
    Claim("idle-is-as-cold-as-fresh",
          "A transfer over one of 160 connections used in turn is as slow as one over a fresh "
          "connection, handshake aside: slow start begins anew after idle time.", idle_is_cold),
    Claim("kept-windows-are-the-gain",
          "Without slow start after idle the same 160 connections are at least twice as quick.",
          warm_is_not, quick=False),
    Claim("full-line-hides-it",
          "On a full line a fresh connection for each costs less than three times the mean.",
          full_line_hides, quick=False),
    Claim("lanes-turn-away",
          "Four lanes with a second's patience refuse more than 1 % on a full line; no other pool "
          "does.", lanes_refuse),
    Claim("small-need-not-queue",
          "With few connections, smallest first at least halves the 90th percentile of the smaller "
          "half of the wide distribution.", small_wait_less),
    Claim("preempting-helps-the-small",
          "Pre-emption makes that at least 5 % shorter still.", preempting_helps, quick=False),
    Claim("deadline-is-arrival-here",
          "Earliest deadline first is first come, first served, since prefill takes no time.",
          deadline_is_arrival, quick=False),
)  # fmt: skip
