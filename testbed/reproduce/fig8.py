"""Figure 8: what share of the output tokens RLD decodes, against MD.

64K prompts, 90 % hits, 1K output. The figure's values are not public; the text says that
RLD's load is far less than MD's.
"""

from __future__ import annotations

from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes, RunOutcome
from testbed.reproduce.routed import relayed_share
from testbed.reproduce.study import Claim, Contrast, Judged, Measure, Study, Variant

LIGHT, LOADED, ONE_SHOT = "as-published", "narrow-line", "as-published-one-shot"
_PLANE = (
    "topology.parameters.prefill=4",
    "topology.parameters.decode=4",
    "serving.hardware.prefill=network-only",
    "workload.output={kind: fixed, tokens: 1000 tokens}",
)


def variants(extent: Extent) -> tuple[Variant, ...]:
    """Two loads of the line; in longer runs also one-shot, other H, RTT, pool, rate and answers."""
    window = "window={measure: 3 s, drain: 180 s}"
    if extent is not Extent.QUICK:
        window = "window={measure: 10 s, drain: 240 s}"
    base = (*_PLANE, window)
    main = (
        Variant(LIGHT, "pdd-paper", "the paper's load: line about 15 % full", base),
        Variant(
            LOADED,
            "pdd-paper",
            "line of 2 x 1.5 Gbit/s in place of 2 x 10",
            (*base, "links.wan.rate=1500 Mbit/s", "links.wan.buffer=9 MiB"),
        ),
    )
    if extent is Extent.QUICK:
        return main
    changes = (
        (ONE_SHOT, "one-shot handoff", "serving.handoff.mode=one-shot"),
        ("h-80", "H of 80 %", "serving.pipeline={kind: hit-threshold, threshold: 80 %}"),
        ("h-98", "H of 98 %", "serving.pipeline={kind: hit-threshold, threshold: 98 %}"),
        ("rtt-60", "RTT 60 ms", "links.wan.rtt=60 ms"),
        ("pool-1", "one connection a pair", "pool.size=1"),
        ("rate-8", "8 requests/s", "workload.arrivals={kind: poisson, rate: 8 /s}"),
        ("output-250", "answers of 250 tokens",
         "workload.output={kind: fixed, tokens: 250 tokens}"),
    )  # fmt: skip
    return (
        *main,
        *(
            Variant(label, "pdd-paper", words, (*base, change), seeds=1, against=LIGHT)
            for label, words, change in changes
        ),
    )


def main_to_relay(run: RunOutcome) -> float | None:
    """Tokens of MD for each one of RLD."""
    share = run.number("rld.token_share")
    return (1 - share) / share if share else None


def far_less(out: Outcomes) -> Judged:
    """RLD decodes under a tenth of what MD decodes."""
    share = out.mean(LIGHT, "rld.token_share")
    against = [] if 0 < share < 1 / 11 else ["it is not above 0 and below a tenth of MD's"]
    return Judged(f"RLD decodes {share:.2%} of all output tokens", against)


def grows_with_load(out: Outcomes) -> Judged:
    """A fuller line means longer transfers, and more tokens of RLD."""
    light, loaded = out.mean(LIGHT, "rld.token_share"), out.mean(LOADED, "rld.token_share")
    against = [] if loaded > light else ["it does not grow"]
    return Judged(f"{light:.2%} on the paper's line, {loaded:.2%} on 2 x 1.5 Gbit/s", against)


STUDY = Study(
    name="fig8",
    title="Figure 8: RLD's share of the output",
    question="How much of the decoding falls on RLD, and what does that depend on?",
    variants=variants,
    measures=(
        Measure("rld.token_share", "Output tokens from RLD"),
        Measure("md-to-rld-tokens", "Tokens of MD for one of RLD", main_to_relay),
        Measure("relayed_share", "Requests through RLD", relayed_share),
        Measure("rld.output_tokens_mean", "Tokens that RLD decodes for a request of its"),
        Measure("handoff.eager_tokens_mean", "Eager tokens, mean"),
        Measure("serving.rld_peak", "Most requests at RLD at once"),
        Measure("offered_load", "Load of the line"),
    ),
    contrasts=(
        Contrast("loaded-to-light", "Share on 2 x 1.5 Gbit/s over that on the paper's line",
                 LOADED, LIGHT, "rld.token_share", lambda own, base: own / base),
    ),
    claims=(
        Claim("rld-decodes-far-less", "RLD decodes under a tenth of what MD does.", far_less),
        Claim("share-grows-with-load", "The share grows with the line's load.", grows_with_load),
    ),
    assumptions=(
        "H of 95 %, RTT 20 ms, 8 connections a pair and the rate of requests: unpublished; longer "
        "runs vary each once, one seed. Hit rates: Beta(0.788, 0.081) on 2 to 99 %.",
        "Four MD in place of 16: RLD's share depends on when the KV is at MD, hardly on how many "
        "decode. Prefill takes no time; it ends before the first token of either.",
        "2 x 1.5 Gbit/s: hit rates at their mean would fill it; few requests often have less.",
        "Arrivals last 3 s (quick) or 10 s; all answers run to their end.",
    ),
    notes=lambda out: ("The values of Figure 8 are not public: no row has a figure beside it.",),
)  # fmt: skip
