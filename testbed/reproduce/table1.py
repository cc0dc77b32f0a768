"""Table 1: accelerators as P or as D, relative to eight H100.

64K input, 90 % hits, 512 output tokens, within the limit on time per token. The profiles
of chips A, C and E are made from this table, so the runs check the emulation, not the chips.
"""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.metrics.events import read_events
from testbed.metrics.run import read_run
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes, RunOutcome
from testbed.reproduce.study import Claim, Contrast, Judged, Measure, Published, Study, Variant

CHIPS = {"a": (0.567, 0.387), "c": (0.417, 0.564), "e": (0.81, 2.10)}
"""Published shares of prefill and decode."""
H100_SEQUENCES = 28
"""What one D of three H100 nodes decodes within 50 ms a step."""
LIMIT_S = 0.0505
"""50 ms a token and 1 %: 28 times a share is rounded to whole sequences (chip A: 11 for 10.8,
whose step takes 50.09 ms)."""
_ONE = ("topology.parameters.prefill=1", "serving.pipeline={kind: direct}",
        "workload.hit={kind: fixed, share: 90 %}")  # fmt: skip


def variants(extent: Extent) -> tuple[Variant, ...]:
    """Each chip as P behind a full queue, and as D at the batch that its share allows."""
    quick = extent is Extent.QUICK
    output, window_s = (64, 8) if quick else (512, 60)
    found: list[Variant] = []
    for chip in ("h100", *CHIPS):
        profile = "h100-p" if chip == "h100" else f"chip-{chip}"
        found.append(
            Variant(
                f"{chip}-prefill", "pdd-paper", f"{profile} as P",
                (*_ONE, "topology.parameters.decode=1", f"serving.hardware.prefill={profile}",
                 "serving.hardware.decode=network-only",
                 f"workload.arrivals={{kind: closed, users: 8, requests: {100 if quick else 400}}}",
                 "workload.output={kind: fixed, tokens: 1 token}",
                 f"window={{warm_up: 5 s, measure: {60 if quick else 240} s, drain: 60 s}}"),
                seeds=1,
            )
        )  # fmt: skip
        profile = "h100-d" if chip == "h100" else f"chip-{chip}"
        users = round(H100_SEQUENCES * (1.0 if chip == "h100" else CHIPS[chip][1]))
        found.append(
            Variant(
                f"{chip}-decode", "pdd-paper", f"{profile} as D, {users} sequences",
                (*_ONE, "topology.parameters.decode=1", "serving.hardware.prefill=network-only",
                 f"serving.hardware.decode={profile}", "pool.size=64",
                 f"workload.arrivals={{kind: closed, users: {users}, requests: {4 * users}}}",
                 f"workload.output={{kind: fixed, tokens: {output} tokens}}",
                 f"window={{warm_up: 4 s, measure: {window_s} s, drain: 120 s}}"),
                seeds=1,
            )
        )  # fmt: skip
    return tuple(found)


def prefills_per_s(run: RunOutcome) -> float | None:
    """Prompts that P finished, per second of the window."""
    return _per_second(run, Kind.PREFILL_END)


def tokens_per_s(run: RunOutcome) -> float | None:
    """Tokens that came to the client, per second of the window."""
    return _per_second(run, Kind.TOKEN)


def _per_second(run: RunOutcome, kind: Kind) -> float | None:
    known = read_run(run.folder)
    t = read_events(run.folder)[kind].t
    window = known.window
    inside = int(np.count_nonzero((t >= window.begin_ns) & (t < window.end_ns)))
    return inside / known.measure_s if inside else None


def ranks(out: Outcomes) -> Judged:
    """The chips come out in the published order, in both phases."""
    own = {
        phase: {chip: out.mean(f"{chip}-{phase}", f"{phase}_rate") for chip in ("h100", *CHIPS)}
        for phase in ("prefill", "decode")
    }
    due = {"prefill": ["h100", "e", "a", "c"], "decode": ["e", "h100", "c", "a"]}
    evidence: list[str] = []
    against: list[str] = []
    for phase, rates in own.items():
        order = sorted(rates, key=lambda chip: -rates[chip])
        evidence.append(f"{phase}: {' > '.join(order)}")
        if order != due[phase]:
            against.append(f"{phase}: published {' > '.join(due[phase])}")
    return Judged("; ".join(evidence), against)


def keeps_limit(out: Outcomes) -> Judged:
    """No D passes the limit: the shares belong to one level of service."""
    times = {chip: out.mean(f"{chip}-decode", "tpot.p90_s") for chip in ("h100", *CHIPS)}
    words = ", ".join(f"{chip} {value * 1e3:.1f} ms" for chip, value in times.items())
    return Judged(
        f"P90 of TPOT: {words}", [f"{c}: {v * 1e3:.1f} ms" for c, v in times.items() if v > LIMIT_S]
    )


def _contrasts() -> tuple[Contrast, ...]:
    return tuple(
        Contrast(f"{chip}-{phase}_share", f"Chip {chip.upper()} against H100, {phase}",
                 f"{chip}-{phase}", f"h100-{phase}", f"{phase}_rate", lambda own, base: own / base)
        for chip in CHIPS
        for phase in ("prefill", "decode")
    )  # fmt: skip


def _published() -> tuple[Published, ...]:
    return tuple(
        Published(f"{chip}-{phase}_share", "", share, "text", "section 2.1, Table 1")
        for chip, shares in CHIPS.items()
        for phase, share in zip(("prefill", "decode"), shares, strict=True)
    )


STUDY = Study(
    name="table1",
    title="Table 1: chips as P or D, relative to H100",
    question="Do the profiles that were made from Table 1 give its shares when they run?",
    variants=variants,
    measures=(
        Measure("prefill_rate", "Prompts a second", prefills_per_s,
                only=tuple(f"{chip}-prefill" for chip in ("h100", *CHIPS))),
        Measure("decode_rate", "Output tokens a second", tokens_per_s,
                only=tuple(f"{chip}-decode" for chip in ("h100", *CHIPS))),
        Measure("tpot.p90_s", "TPOT, P90",
                only=tuple(f"{chip}-decode" for chip in ("h100", *CHIPS))),
    ),
    contrasts=_contrasts(),
    published=_published(),
    claims=(
        Claim("chips-rank-as-published", "The chips rank as published in both phases.", ranks),
        Claim("limit-is-kept", "No D exceeds 50 ms a token at P90 by over 1 %.", keeps_limit),
    ),
    assumptions=(
        "Fitted, not predicted: the profiles of chips A, C and E are h100-p and h100-d with times "
        "divided by the published share (docs/hardware.md). What can fail is their way through "
        "queue, batch and clock.",
        "Published for GLM-5 and GLM-4.7, here DeepSeek-V4-Pro. Chips B and D have no figures.",
        "P: eight users in a closed loop. D: 28 sequences times the share: 50 ms a step.",
        "RTT, connections and H are not varied: P is measured at its own end, D's time per token "
        "begins with the first token, and every request goes P-MD.",
        "Answers of 64 tokens (quick) or 512; one seed, since nothing is drawn but arrivals.",
    ),
)  # fmt: skip
