"""Measures the rate stage alone: spacing of a burst, and what a burst too large loses."""

from __future__ import annotations

from testbed.fidelity.bench import Bench, settled
from testbed.fidelity.frame import Template
from testbed.fidelity.probe import Probe
from testbed.fidelity.row import CalibrationRow
from testbed.shaping.ratespec import NS, Reciprocal

FAST_BPS = 100_000_000_000
"""From here on a frame is shorter than the clock's quantum; see docs/limitations.md."""
LIVE_SENDING = 0.8
"""Part of a burst's time on the link that sending it may take on a live machine; more, and the
rate of exits is that of the sender."""
MOST_FRAMES = 20_000
MOST_BYTES = 192 << 20
"""A burst lies in the guest's memory as a whole; what is larger is only read back."""


def measure_rate(bench: Bench, template: Template, most: int) -> CalibrationRow:
    """Send up to ``most`` frames at once; the rate is that of their exits."""
    return settled(bench.precision, lambda: _rate_of_a_burst(bench, template, most))


def _rate_of_a_burst(bench: Bench, template: Template, most: int) -> CalibrationRow:
    spec, precision = bench.way.spec, bench.precision
    per_frame = bench.serialisation_ns(template.wire_bytes)
    count = max(2, min(most, spec.buffer_bytes * 8 // 10 // template.wire_bytes))
    with Probe(bench.source, bench.middle, template) as probe:
        wait = count * per_frame + bench.longest_ns + precision.margin_ns
        burst = probe.burst(count, wait, count if precision.live else None)
    tolerance = precision.fast_rate if spec.rate_bps >= FAST_BPS else precision.rate
    name = f"rate, {count} frames of {template.wire_bytes} B"
    requested = f"{spec.rate_bps / 1e9:g} Gbit/s"
    if len(burst.arrivals) != count or count < 2:
        return bench.row(name, requested, f"{len(burst.arrivals)} arrived", "all arrive", False)
    if precision.live and burst.took_ns > LIVE_SENDING * (count - 1) * per_frame:
        sent = count * template.wire_bytes * 8 / burst.took_ns
        text = f"not measured: this machine sends {sent:.3g} Gbit/s, too few to tell"
        return bench.row(name, requested, text, "", True)
    first, last = burst.arrivals[0], burst.arrivals[-1]
    span = last.at_ns - first.at_ns
    measured = (last.number - first.number) * template.wire_bytes * 8 * NS / max(span, 1)
    deviation = measured / spec.rate_bps - 1
    text = f"{measured / 1e9:.6g} Gbit/s ({deviation:+.4%})"
    return bench.row(name, requested, text, f"{tolerance:.1%}", abs(deviation) <= tolerance)


def measure_buffer(bench: Bench, template: Template) -> CalibrationRow:
    """Send more than the buffer holds in one instant; count what is let through."""
    spec, police = bench.way.spec, bench.police
    size = template.wire_bytes
    name, requested = f"buffer, frames of {size} B", f"{spec.buffer_bytes} B"
    fit = spec.buffer_bytes // size
    count = fit + fit // 10 + 10
    if police is None:
        return bench.row(name, requested, "not measured: no bound was compiled", "", False)
    if count > MOST_FRAMES or count * size > MOST_BYTES:
        text = f"not measured: {count} frames are more than a burst may be"
        return bench.row(name, requested, text, "", True)
    with Probe(bench.source, bench.middle, template) as probe:
        wait = count * bench.serialisation_ns(size) + bench.longest_ns + bench.precision.margin_ns
        burst = probe.burst(count, wait)
    cost = Reciprocal.of(police.rate).time_ns(size)
    refilled = burst.took_ns // max(cost, 1)
    admitted = len(burst.arrivals)
    ok = abs(admitted - fit) <= 1 + refilled
    text = f"{admitted * size} B ({admitted} of {count} frames)"
    tolerance = f"{size} B + what left in {burst.took_ns} ns"
    return bench.row(name, requested, text, tolerance, ok)
