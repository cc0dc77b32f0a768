"""Section 5: which requests take relay decode, and which MD a request should go to.

The paper: over 70 % go P-MD, 20 to 30 % P-RLD-MD; H itself is unpublished. Which of 16 MD
is chosen decides whether the decode-side cache finds anything.
"""

from __future__ import annotations

from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.routed import relayed_share, request_bytes
from testbed.reproduce.sessions import ASSUMPTIONS, sessions
from testbed.reproduce.study import Claim, Contrast, Judged, Measure, Published, Study, Variant

RULES = ("random", "least-loaded", "session-sticky", "longest-prefix")
PUBLISHED_SHARE = (0.2, 0.3)
_PLANE = (
    "topology.parameters.prefill=2",
    "topology.parameters.decode=2",
    "serving.hardware.prefill=network-only",
    "workload.output={kind: fixed, tokens: 4 tokens}",
)


def variants(extent: Extent) -> tuple[Variant, ...]:
    """H on the paper's hit rates; four rules of choice on sessions over 16 MD."""
    quick = extent is Extent.QUICK
    window = f"window={{measure: {10 if quick else 60} s, drain: 60 s}}"
    thresholds = (90, 95) if quick else (80, 90, 95, 97, 98)
    rules = ("random", "session-sticky", "longest-prefix") if quick else RULES
    own = sessions(extent, decode=16)
    return (
        *(
            Variant(
                f"h-{value}", "pdd-paper", f"H of {value} %",
                (*_PLANE, window,
                 f"serving.pipeline={{kind: hit-threshold, threshold: {value} %}}"),
            )
            for value in thresholds
        ),
        *(
            Variant(
                rule, "pdd-paper", f"MD by {rule}, sessions",
                (*own, f"serving.instances.decode={rule}"),
            )
            for rule in rules
        ),
    )  # fmt: skip


def splits(out: Outcomes) -> Judged:
    """At H of 95 % the published share goes through RLD."""
    share = out.mean("h-95", "relayed_share")
    low, high = PUBLISHED_SHARE
    against = [] if low <= share <= high else ["that is not the published share"]
    return Judged(
        f"{share:.1%} of the requests go through RLD at H of 95 %; published: {low:.0%} to "
        f"{high:.0%}",
        against,
    )


def follows_threshold(out: Outcomes) -> Judged:
    """A higher H sends more through RLD, in each seed."""
    values = (80, 90, 95, 97, 98)
    labels = [f"h-{n}" for n in values if out.has(f"h-{n}") or n in (90, 95)]
    shares = [out.of(label, "relayed_share") for label in labels]
    against: list[str] = []
    for lower, low, high in zip(labels, shares, shares[1:], strict=False):
        common = [seed for seed in high if seed in low]
        if not common:
            against.append(f"{lower} and the next H: no seed has a faithful run of both")
        against.extend(
            f"seed {seed}: not above {lower}" for seed in common if high[seed] < low[seed]
        )
    words = ", ".join(f"{label} {out.mean(label, 'relayed_share'):.1%}" for label in labels)
    return Judged(words, against)


def random_collapses(out: Outcomes) -> Judged:
    """By chance, MD transfers more than twice as much as where the session stays."""
    hit, own = out.mean("random", "cache.md_hit"), out.mean("session-sticky", "cache.md_hit")
    missed = (1 - hit) / (1 - own)
    against = [] if missed > 2 else ["less than twice as much is missing at MD"]
    return Judged(
        f"MD hits {hit:.1%} by chance and {own:.1%} where sessions stay: {missed:.1f} times as "
        "much must be sent",
        against,
    )


STUDY = Study(
    name="routing",
    title="Routing: the 70 to 30 split, and the choice of MD",
    question="Which H gives the paper's split, how sharply does the split depend on it, and what "
    "does the choice among 16 MD do to the decode-side cache?",
    variants=variants,
    measures=(
        Measure("relayed_share", "Requests through RLD", relayed_share),
        Measure("cache.md_hit", "Hit at MD", only=RULES),
        Measure("cache.p_hit", "Hit at P", only=RULES),
        Measure("request_bytes", "Bytes to MD, a request", request_bytes, only=RULES),
        Measure("transfer.p99_s", "Transfer, P99", only=RULES),
        Measure("requests.offered", "Requests"),
    ),
    contrasts=(
        Contrast("random-to-sticky", "Bytes by chance over bytes with sticky sessions", "random",
                 "session-sticky", "request_bytes", lambda own, base: own / base),
    ),
    published=(
        Published("h-95", "relayed_share", 0.25, "derived", "section 5: 20 to 30 %, its middle"),
    ),
    claims=(
        Claim(
            "splits-three-to-one",
            "H of 95 % sends 20 to 30 % through RLD: the drawn share of hits below H, which tests "
            "the router and predicts nothing.",
            splits,
        ),
        Claim("split-follows-h", "A higher H sends more through RLD.", follows_threshold),
        Claim("random-choice-collapses",
              "Choosing MD by chance sends more than twice the bytes of sticky sessions.",
              random_collapses),
    ),
    assumptions=(
        "The split: hit rates Beta(0.788, 0.081) on 2 to 99 %, 11.5 requests/s, 4 tokens each.",
        "The split follows from H and the distribution alone: it is a property of the assumed "
        "distribution as much as of the router.",
        *ASSUMPTIONS,
        "RTT of 20 ms and 8 connections a pair are unpublished and not varied: H looks at the hit "
        "alone, and a rule of choice at caches, sessions and open requests. Nor are the shape of "
        "the sessions and their rate varied here; the study parity does that for two of them.",
    ),
)  # fmt: skip
