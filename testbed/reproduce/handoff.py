"""Section 4, handoff modes: what the user sees while an answer passes from RLD to MD.

The paper: catch-up shows no stall and costs RLD about 10 % more output; one-shot shows a
dip of under 0.5 s. Beside them: the naive transfer of KV, and the choice by RLD's load.
"""

from __future__ import annotations

from collections.abc import Mapping

from testbed.metrics.serving_record import OutputRate
from testbed.report import wording
from testbed.report.chart import Axis, Chart, Colour, Trace
from testbed.report.table import Table
from testbed.reproduce.extent import Extent
from testbed.reproduce.handover import figure, mean
from testbed.reproduce.loaded_line import (
    ASSUMPTIONS,
    FAR,
    FEWER,
    FILLED,
    HALF,
    ONE,
    handing_over,
)
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.study import Claim, Contrast, Judged, Measure, Published, Study, Variant

CATCH_UP, ONE_SHOT, NAIVE, DYNAMIC = "catch-up", "one-shot", "incremental-kv", "dynamic"
_MARKS = ("serving.handoff.upper=12 %", "serving.handoff.lower=6 %")
"""Of RLD's batch of 64: it holds four to ten requests here."""
_COLOURS: tuple[tuple[str, Colour], ...] = (
    (CATCH_UP, "one"), (ONE_SHOT, "two"), (NAIVE, "three"), (DYNAMIC, "four"),
)  # fmt: skip
DIP_MOST_S = 0.5


def variants(extent: Extent) -> tuple[Variant, ...]:
    """Four modes; in longer runs two of them also with single changes."""
    main = (
        handing_over(CATCH_UP, "catch-up", "catch-up", extent),
        handing_over(ONE_SHOT, "one-shot", "one-shot", extent),
        handing_over(NAIVE, "naive: RLD sends its KV over the WAN", "incremental-kv", extent),
        handing_over(DYNAMIC, "catch-up or one-shot, by RLD's load", "dynamic", extent, _MARKS),
    )
    if extent is Extent.QUICK:
        return main
    changes = (
        ("rtt60", "RTT 60 ms", FAR, FILLED),
        ("pool1", "one connection a pair", ONE, FILLED),
        ("rate1", "1 request/s", FEWER, FILLED),
        ("half", "at half the load", (), HALF),
    )
    return (
        *main,
        *(
            handing_over(f"{mode}-{name}", f"{mode}, {words}", mode, extent, change, 1, mode, load)
            for name, words, change, load in changes
            for mode in (CATCH_UP, ONE_SHOT)
        ),
    )


def never_stalls(out: Outcomes) -> Judged:
    """Catch-up has no gap that counts as a stall, in any seed."""
    counts = out.of(CATCH_UP, "stall.count")
    against = [f"seed {seed}: {count:g} stalls" for seed, count in counts.items() if count]
    gap = out.mean(CATCH_UP, "gap_mean_s")
    return Judged(
        f"{sum(counts.values()):g} stalls in catch-up (n = {len(counts)}); mean gap at the "
        f"handoff {wording.seconds(gap)}",
        against,
    )


def dips_briefly(out: Outcomes) -> Judged:
    """One-shot's gap is longer than catch-up's, and on average under half a second."""
    own, other = out.mean(ONE_SHOT, "gap_mean_s"), out.mean(CATCH_UP, "gap_mean_s")
    longest = out.mean(ONE_SHOT, "gap_max_s")
    against: list[str] = []
    if own < 2 * other:
        against.append("the gap is not twice that of catch-up")
    if own >= DIP_MOST_S:
        against.append("the mean gap is half a second or more")
    return Judged(
        f"mean gap {wording.seconds(own)} (longest {wording.seconds(longest)}) against "
        f"{wording.seconds(other)} in catch-up",
        against,
    )


def costs_output(out: Outcomes) -> Judged:
    """RLD decodes more in catch-up."""
    own = out.mean(CATCH_UP, "rld.output_tokens_mean")
    other = out.mean(ONE_SHOT, "rld.output_tokens_mean")
    against = [] if own > other else ["RLD does not decode more in catch-up"]
    return Judged(f"RLD decodes {own:.1f} tokens a request against {other:.1f}", against)


def chooses_both(out: Outcomes) -> Judged:
    """Dynamic used both modes: else its row shows one of them under another name."""
    counts = {
        mode: sum(out.values.get((DYNAMIC, f"serving.handoffs_by_mode.{mode}"), {}).values())
        for mode in ("catch-up", "one-shot")
    }
    words = ", ".join(f"{count:g} {mode}" for mode, count in counts.items())
    return Judged(words, [f"no {mode}" for mode, count in counts.items() if not count])


def charts(out: Outcomes) -> tuple[Chart, ...]:
    """Output around the handoff, one line a mode."""
    traces: list[Trace] = []
    rows: list[tuple[str, ...]] = []
    for label, colour in _COLOURS:
        curve = _curve(out, label)
        if curve:
            traces.append(
                Trace(name=label, colour=colour, x=tuple(curve), y=tuple(curve.values()),
                      mode="lines+markers")
            )  # fmt: skip
            lowest = min(curve, key=curve.__getitem__)
            rows.append((label, wording.digits(curve[lowest]), f"{lowest:+.2f} s"))
    if not traces:
        return ()
    return (
        Chart(
            id="otps",
            title="Output around the handoff",
            alt="Tokens per second of one answer around MD's first token: "
            + "; ".join(f"{label} falls to {rate} at {at}" for label, rate, at in rows),
            note="Mean over answers under way for the whole bin of 100 ms, and over the seeds. RLD "
            "before, MD after 0; MD steps faster here.",
            x=Axis(title="time from MD's first token at the client (s)"),
            y=Axis(title="tokens per second of one answer", zero=True),
            traces=tuple(traces),
            table=Table(caption="Lowest bin", head=("mode", "tokens/s", "at"), rows=tuple(rows)),
        ),
    )


def _curve(out: Outcomes, label: str) -> dict[float, float]:
    """Middle of a bin to mean tokens per second, weighted by answers."""
    tokens: dict[float, float] = {}
    answers: dict[float, int] = {}
    for run in out.faithful(label):
        serving = run.metrics.tree.get("serving")
        if not isinstance(serving, Mapping):
            continue
        rate = OutputRate.model_validate(serving.get("otps"))
        for at, speed, many in zip(rate.at_s, rate.tokens_per_s, rate.answers, strict=True):
            if speed is not None:
                tokens[at] = tokens.get(at, 0.0) + speed * many
                answers[at] = answers.get(at, 0) + many
    return {at: round(total / answers[at], 3) for at, total in tokens.items()}


STUDY = Study(
    name="handoff",
    title="Handoff from RLD to MD: what the user sees",
    question="Does catch-up hide the handoff, what does it cost RLD, and how long does one-shot "
    "hold the answer up?",
    variants=variants,
    measures=(
        Measure("handoff.count", "Handoffs"),
        Measure("handoff.eager_tokens_mean", "Eager tokens, mean"),
        Measure("rld.output_tokens_mean", "Tokens that RLD decodes for a request"),
        Measure("gap_mean_s", "Gap at the handoff, mean", figure(lambda one: one.gap_s, mean)),
        Measure("gap_max_s", "Gap at the handoff, longest", figure(lambda one: one.gap_s, max)),
        Measure("stall.count", "Stalls"),
        Measure("stall.max_s", "Longest stall"),
        Measure("offered_load", "Load of the line"),
        Measure("serving.rld_peak", "Most requests at RLD at once"),
        Measure("serving.handoffs_by_mode.catch-up", "Handed over by catch-up", only=(DYNAMIC,)),
        Measure("serving.handoffs_by_mode.one-shot", "Handed over in one shot", only=(DYNAMIC,)),
    ),
    contrasts=(
        Contrast(
            "extra-rld-output_share", "Extra output of RLD", CATCH_UP, ONE_SHOT,
            "rld.output_tokens_mean", lambda own, base: own / base - 1,
        ),
    ),
    published=(
        Published("extra-rld-output_share", "", 0.10, "text", "section 6, handoff modes: roughly"),
        Published(CATCH_UP, "stall.count", 0, "text", "section 6, handoff modes"),
        Published(ONE_SHOT, "gap_mean_s", 0.5, "text", "section 6, handoff modes: less than"),
    ),
    claims=(
        Claim("catch-up-never-stalls", "Catch-up shows no stall.", never_stalls),
        Claim(
            "one-shot-dips-briefly",
            "One-shot interrupts the answer twice as long as catch-up or longer, and for less than "
            "half a second on average.",
            dips_briefly,
        ),
        Claim("catch-up-costs-output", "RLD decodes more in catch-up.", costs_output),
        Claim(
            "dynamic-uses-both", "Dynamic uses both modes under this load.", chooses_both,
            quick=False,
        ),
    ),
    assumptions=(
        *ASSUMPTIONS,
        "Dynamic: one-shot from 12 % of RLD's batch limit until it is back at 6 %.",
        "A stall is a gap above 200 ms and above five times the median time per token.",
    ),
    charts=charts,
)  # fmt: skip
