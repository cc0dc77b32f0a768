"""Figure 5: the caches of P and MD stay alike because every pipeline ends at MD.

The paper leaves P-RLD out for this reason. Here P-RLD runs: RLD takes what it has room
for, the rest goes P-MD and finds at MD nothing of the turns that ended at RLD.
"""

from __future__ import annotations

from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.routed import gap_share, relayed_share
from testbed.reproduce.sessions import ASSUMPTIONS, sessions
from testbed.reproduce.study import Claim, Judged, Measure, Published, Study, Variant

PDD, DIRECT, RELAYED = "pdd", "p-md", "p-rld"
_RELAY = ("serving.hardware.relay=demo-cpu",)
"""A batch of 16: small enough that it cannot take everything."""
_CHANGES = (
    ("h-50", "H of 50 %", "serving.pipeline.threshold=50 %"),
    ("rtt-60", "RTT 60 ms", "links.wan.rtt=60 ms"),
    ("pool-1", "one connection a pair", "pool.size=1"),
    ("rate-8", "8 requests/s", "workload.arrivals={kind: poisson, rate: 8 /s}"),
    ("sessions-48", "48 sessions", "workload.prompts.sessions=48"),
)


def variants(extent: Extent) -> tuple[Variant, ...]:
    """The paper's two pipelines, P-MD alone, P-RLD where there is room; then changes."""
    own = (*sessions(extent, decode=4, output=64), *_RELAY)
    split = "serving.pipeline={kind: hit-threshold, threshold: 90 %}"
    main = (
        Variant(PDD, "pdd-paper", "P-MD and P-RLD-MD", (*own, split)),
        Variant(DIRECT, "pdd-paper", "P-MD only", (*own, "serving.pipeline={kind: direct}")),
        Variant(
            RELAYED, "pdd-paper", "P-RLD while it has room, else P-MD",
            (*own, "serving.pipeline={kind: relay-only}"),
        ),
    )  # fmt: skip
    if extent is Extent.QUICK:
        return main
    return (
        *main,
        *(
            Variant(label, "pdd-paper", words, (*own, split, change), seeds=1, against=PDD)
            for label, words, change in _CHANGES
        ),
    )


def keeps_parity(out: Outcomes) -> Judged:
    """The hits of P and MD lie within three points."""
    gap = out.mean(PDD, "gap_share")
    return Judged(_hits(out, PDD), [] if gap < 0.03 else [f"they lie {gap:.1%} apart"])


def breaks_parity(out: Outcomes) -> Judged:
    """With P-RLD the hits lie apart: at least 10 points and five times as far."""
    gap, usual = out.mean(RELAYED, "gap_share"), out.mean(PDD, "gap_share")
    words = f"{_hits(out, RELAYED)}: {gap:.1%} apart, {usual:.1%} without P-RLD"
    against = [] if gap >= max(0.1, 5 * usual) else ["the caches stay alike"]
    return Judged(words, against)


def _hits(out: Outcomes, label: str) -> str:
    p, md = (out.mean(label, f"serving.parity.{side}_hit") for side in ("p", "md"))
    return f"P {p:.1%}, MD {md:.1%}"


STUDY = Study(
    name="parity",
    title="Figure 5: parity of P's and MD's caches",
    question="Do the hits of P and MD agree when all pipelines end at MD, and do they part when "
    "some answers end at RLD?",
    variants=variants,
    measures=(
        Measure("serving.parity.p_hit", "Hit at P"),
        Measure("serving.parity.md_hit", "Hit at MD"),
        Measure("gap_share", "Hits apart by", gap_share),
        Measure("serving.parity.unequal_fraction", "Requests whose two matches differ"),
        Measure("relayed_share", "Requests through RLD", relayed_share),
    ),
    published=(
        Published(PDD, "gap_share", 0.0, "text", "section 5: guarantees parity"),
    ),
    claims=(
        Claim(
            "parity-holds",
            "Where all pipelines end at MD, P's hit is within 3 points of MD's.",
            keeps_parity,
        ),
        Claim(
            "p-rld-breaks-parity",
            "With P-RLD they part: by 10 points or more, and five times as far.",
            breaks_parity,
        ),
    ),
    assumptions=(
        *ASSUMPTIONS,
        "Sessions stay at their P and their MD. H of 90 %; answers of 64 tokens.",
        "RLD has a batch of 16 (profile demo-cpu), so that P-RLD leaves something for MD: with an "
        "RLD that takes everything, MD is never asked and there is no hit to compare.",
        "Sessions, their number (24) and the rate of requests (5 /s), RTT of 20 ms, 8 connections "
        "and H are unpublished: longer runs vary each once (48, 8 /s, 60 ms, one, 50 %).",
        "The paper has no figures for this; Figure 5 is a drawing.",
    ),
)  # fmt: skip
