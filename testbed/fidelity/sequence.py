"""Compares the fate of thousands of frames with the offline model of netem's generator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from testbed.contract.link import LinkSpec
from testbed.fidelity.bench import Bench
from testbed.fidelity.frame import plain
from testbed.fidelity.probe import Burst, Probe
from testbed.fidelity.row import CalibrationRow
from testbed.shaping.netem_model import Fate, NetemModel

FRAMES = 10_000
BURST = 1_000
SMALL = 64
Expect: TypeAlias = Callable[[Fate, Burst, int], Sequence[int]]
"""(fate, burst, time of exit from the rate stage) to the delays of its copies, ascending."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outcome of one burst: frames with another fate, lost ones, delays and their worst error.

    ``overtaken`` counts frames that came out after one that was sent later.
    """

    wrong: tuple[int, ...]
    lost: int
    worst_ns: int
    delays_ns: tuple[int, ...]
    overtaken: int


def has_draws(spec: LinkSpec) -> bool:
    """Whether the delay stage treats packets differently from one another."""
    return bool(spec.loss or spec.duplicate or spec.corrupt or spec.jitter) and not spec.slot


def measure_sequence(bench: Bench) -> tuple[list[CalibrationRow], list[int]]:
    """Loss, duplication and delay of 10,000 frames, each against its prediction.

    Returns the rows and all delays (ns) that were measured.
    """
    spec = bench.way.spec
    per_frame = bench.serialisation_ns(SMALL)
    size = max(1, min(BURST, spec.buffer_bytes * 8 // 10 // SMALL))
    wait = size * per_frame + bench.longest_ns + bench.precision.margin_ns
    bench.wire.reseed(bench.way)
    model = NetemModel(bench.delay)
    outcomes: list[tuple[int, Comparison]] = []
    with Probe(bench.source, bench.sink, plain(SMALL)) as probe:
        for begin in range(0, FRAMES, size):
            fates = model.predict(min(size, FRAMES - begin))
            burst = probe.burst(len(fates), wait)
            outcomes.append((begin, compare(fates, burst, per_frame, bench.delays_ns)))
    rows = [_fate_row(bench, outcomes)]
    delays = [delay for _, outcome in outcomes for delay in outcome.delays_ns]
    if spec.jitter:
        rows.append(_jitter_row(bench, [outcome for _, outcome in outcomes], len(delays)))
    return rows, delays


def compare(fates: Sequence[Fate], burst: Burst, per_frame_ns: int, expect: Expect) -> Comparison:
    """Match arrivals with fates; frame i leaves the rate stage after i + 1 serialisations.

    A corrupted frame may be unrecognisable, so it is not held to anything.
    """
    arrived: dict[int, list[int]] = defaultdict(list)
    for arrival in burst.arrivals:
        exit_ns = burst.sent_ns + (arrival.number + 1) * per_frame_ns
        arrived[arrival.number].append(arrival.at_ns - exit_ns)
    wrong: list[int] = []
    delays: list[int] = []
    lost = worst = 0
    for number, fate in enumerate(fates):
        if fate.corrupted:
            continue
        seen = sorted(arrived.get(number, ()))
        lost += not seen
        wanted = expect(fate, burst, burst.sent_ns + (number + 1) * per_frame_ns)
        if len(seen) != len(wanted):
            wrong.append(number)
            continue
        delays.extend(seen)
        for one, other in zip(seen, wanted, strict=True):
            worst = max(worst, one - other, key=abs)
    order = [arrival.number for arrival in burst.arrivals]
    overtaken = sum(one > other for one, other in pairwise(order))
    return Comparison(tuple(wrong), lost, worst, tuple(delays), overtaken)


def _fate_row(bench: Bench, outcomes: list[tuple[int, Comparison]]) -> CalibrationRow:
    wrong = [begin + number for begin, outcome in outcomes for number in outcome.wrong]
    lost = sum(outcome.lost for _, outcome in outcomes)
    text = f"{lost} lost, "
    text += f"{len(wrong)} differ, first number {wrong[0] + 1}" if wrong else "all as predicted"
    requested = f"{bench.way.spec.loss or 'no loss'}, seed {bench.delay.seed}"
    return bench.row(f"fate of {FRAMES} frames", requested, text, "equal", not wrong)


def _jitter_row(bench: Bench, outcomes: list[Comparison], count: int) -> CalibrationRow:
    spec = bench.way.spec
    jitter = spec.jitter
    ordered = jitter is not None and not jitter.reorder
    worst = max((outcome.worst_ns for outcome in outcomes), key=abs)
    overtaken = sum(outcome.overtaken for outcome in outcomes)
    tolerance = bench.precision.delay_ns + bench.serialisation_ns(bench.full().wire_bytes)
    text = f"off by at most {worst:+d} ns in {count} frames, {overtaken} overtaken"
    ok = count > 0 and abs(worst) <= tolerance and not (ordered and overtaken)
    return bench.row(
        "jitter of each frame, " + ("in order" if ordered else "reordering"),
        f"{spec.delay_ns} ± {jitter.spread_ns if jitter else 0} ns",
        text if count else "no frame came through as predicted, so there is no delay to compare",
        f"{tolerance} ns" + (", none overtaken" if ordered else ""),
        ok,
    )
