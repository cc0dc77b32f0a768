"""Measures the delay of lone frames on an idle link against the prediction for each."""

from __future__ import annotations

from testbed.fidelity.bench import Bench, settled
from testbed.fidelity.frame import Template
from testbed.fidelity.probe import Probe
from testbed.fidelity.row import CalibrationRow
from testbed.shaping.netem_model import NetemModel


def measure_delay(bench: Bench, template: Template, probes: int) -> CalibrationRow:
    """Send lone frames; worst deviation from serialisation + predicted delay."""
    return settled(bench.precision, lambda: _delay_of(bench, template, probes))


def _delay_of(bench: Bench, template: Template, probes: int) -> CalibrationRow:
    spec, delay = bench.way.spec, bench.delay
    serialisation = bench.serialisation_ns(template.wire_bytes)
    tolerance = bench.precision.delay_ns + bench.serialisation_ns(bench.full().wire_bytes)
    bench.wire.reseed(bench.way)
    model = NetemModel(delay)
    worst, seen, strays = 0, 0, 0
    with Probe(bench.source, bench.sink, template) as probe:
        for _ in range(probes):
            fate = model.next_packet()
            wait = serialisation + bench.longest_ns + bench.precision.margin_ns
            copies = len(fate.delays_ns) if bench.precision.live else None
            burst = probe.burst(1, wait, copies)
            measured = sorted(arrival.at_ns - burst.sent_ns for arrival in burst.arrivals)
            exit_ns = burst.sent_ns + serialisation
            expected = [serialisation + one for one in bench.delays_ns(fate, burst, exit_ns)]
            if fate.corrupted:
                continue
            strays += abs(len(measured) - len(expected))
            for one, other in zip(measured, expected, strict=False):
                seen += 1
                late = one - other
                slack = spec.slot.max_ns if spec.slot else 0
                excess = late if late < 0 else max(0, late - slack)
                worst = max(worst, excess, key=abs)
    ok = strays == 0 and seen > 0 and abs(worst) <= tolerance
    text = found_words(worst, seen, probes, strays)
    name = f"delay, lone frames of {template.wire_bytes} B"
    return bench.row(name, f"{spec.delay_ns} ns", text, f"{tolerance} ns", ok)


def found_words(worst_ns: int, seen: int, probes: int, strays: int) -> str:
    """What was found: of ``seen`` frames the worst, or that none of the probes came through."""
    text = f"off by at most {worst_ns:+d} ns in {seen} frames"
    if not seen:
        text = f"every probe was lost, {probes} of {probes}"
    return f"{text}, {strays} frames too many or too few" if strays else text
