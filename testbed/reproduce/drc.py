"""Section 2.2: how much a decode-side radix cache (DRC) saves on the wire.

The paper: in theory up to ten times at an average hit rate of 90 %.
"""

from __future__ import annotations

from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.routed import request_bytes
from testbed.reproduce.sessions import sessions
from testbed.reproduce.study import Claim, Contrast, Judged, Measure, Published, Study, Variant

_PLANE = (
    "topology.parameters.prefill=2",
    "topology.parameters.decode=2",
    "serving.hardware.prefill=network-only",
    "serving.pipeline={kind: direct}",
    "workload.output={kind: fixed, tokens: 4 tokens}",
)
_OFF = "serving.caches.decode=0 B"
_HITS: tuple[tuple[str, str, str], ...] = (
    ("wide", "wide and skewed, mean 90 %", ""),
    ("narrow", "even over 85 to 95 %", "workload.hit={kind: uniform, low: 85 %, high: 95 %}"),
    ("fixed-90", "90 % each", "workload.hit={kind: fixed, share: 90 %}"),
    ("fixed-50", "50 % each", "workload.hit={kind: fixed, share: 50 %}"),
)
_SIZE = {
    Extent.QUICK: ("workload.arrivals={kind: poisson, rate: 3 /s}",
                   "window={measure: 12 s, drain: 60 s}"),
    Extent.NORMAL: ("workload.arrivals={kind: poisson, rate: 4 /s}",
                    "window={measure: 40 s, drain: 120 s}"),
    Extent.FULL: ("workload.arrivals={kind: poisson, rate: 4 /s}",
                  "window={measure: 120 s, drain: 120 s}"),
}  # fmt: skip


def variants(extent: Extent) -> tuple[Variant, ...]:
    """Each distribution with and without the cache; longer runs add fixed hits and sessions."""
    hits = _HITS[:2] if extent is Extent.QUICK else _HITS
    pairs = [
        Variant(
            f"{name}-{label}", "pdd-paper", f"{words}, {state}",
            (*_PLANE, *_SIZE[extent], *([change] if change else []), *off),
        )
        for name, words, change in hits
        for label, state, off in (("drc", "with DRC", ()), ("none", "without", (_OFF,)))
    ]  # fmt: skip
    if extent is Extent.QUICK:
        return tuple(pairs)
    own = sessions(extent, decode=4)
    return (
        *pairs,
        Variant("sessions-drc", "pdd-paper", "agent sessions, with DRC", own),
        Variant("sessions-none", "pdd-paper", "agent sessions, without", (*own, _OFF)),
    )


def cut(name: str) -> Contrast:
    """Bytes without the cache over bytes with it, for the same requests."""
    return Contrast(
        f"cut-{name}", f"Bytes without DRC over bytes with it, {name}", f"{name}-none",
        f"{name}-drc", "request_bytes", lambda own, base: own / base,
    )  # fmt: skip


def cuts_by_hit(out: Outcomes) -> Judged:
    """The cut is 1 / (1 - hit) of the very requests, within 5 %, for each distribution."""
    evidence: list[str] = []
    against: list[str] = []
    for name in ("wide", "narrow"):
        with_s, without_s = (
            out.of(f"{name}-drc", "request_bytes"),
            out.of(f"{name}-none", "request_bytes"),
        )
        hits = out.of(f"{name}-drc", "cache.md_hit")
        seeds = [seed for seed in with_s if seed in without_s and seed in hits]
        if not seeds:
            against.append(f"{name}: no seed has a faithful run with and without DRC")
        for seed in seeds:
            seen, due = without_s[seed] / with_s[seed], 1 / (1 - hits[seed])
            evidence.append(f"{name}, seed {seed}: {seen:.2f} times at a hit of {hits[seed]:.1%}")
            if abs(seen / due - 1) > 0.05:
                against.append(f"{name}, seed {seed}: {seen:.2f} times, the hit gives {due:.2f}")
    return Judged("; ".join(evidence), against)


STUDY = Study(
    name="drc",
    title="Decode-side radix cache: bytes on the wire",
    question="By how much does DRC cut what crosses the WAN, and does that depend on how hits are "
    "distributed?",
    variants=variants,
    measures=(
        Measure("request_bytes", "Bytes to MD, a request", request_bytes),
        Measure("cache.md_hit", "Hit at MD"),
        Measure("transfer.p50_s", "Transfer, P50"),
        Measure("transfer.p99_s", "Transfer, P99"),
        Measure("offered_load", "Load of the line"),
    ),
    contrasts=tuple(cut(name) for name in ("wide", "narrow", "fixed-90", "fixed-50", "sessions")),
    published=(
        Published("cut-wide", "", 10, "text", "section 2.2: up to"),
        Published("cut-narrow", "", 10, "text", "section 2.2: up to"),
        Published("cut-fixed-90", "", 10, "text", "section 2.2: up to"),
    ),
    claims=(
        Claim(
            "cut-is-the-uncached-part",
            "DRC cuts the bytes to the uncached part of the very requests, within 5 %: an identity "
            "of the drawn hits, which tests caches and wire and predicts nothing.",
            cuts_by_hit,
        ),
    ),
    assumptions=(
        "Every request goes P-MD; prefill takes no time; answers have 4 tokens, which do not "
        "matter for bytes. 3 or 4 requests/s, so that whole prompts fit the line as well.",
        "One document stands for what conversations share; all caches hold it from the start, so "
        "the hit rates are as drawn. Sessions have real caches, which fill as the run goes.",
        "H, RTT and connections are not varied: MD's cache decides what is sent when the request "
        "comes, from what earlier requests left in it. No request asks for RLD here, and a slower "
        "line only sends the same bytes later.",
        "Few requests of a skewed distribution have a mean hit far from 90 %: compare the cut with "
        "the hit of the same row.",
    ),
)
