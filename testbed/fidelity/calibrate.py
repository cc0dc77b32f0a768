"""Calibration: every link and direction, requested against applied against measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from testbed.contract.network import End, Link, Network
from testbed.errors import FidelityError
from testbed.fidelity.behind import with_fields
from testbed.fidelity.bench import Bench, bench_of
from testbed.fidelity.delay import measure_delay
from testbed.fidelity.frame import plain
from testbed.fidelity.precision import EXACT, Precision
from testbed.fidelity.probe import Place
from testbed.fidelity.rate import measure_buffer, measure_rate
from testbed.fidelity.row import CalibrationRow
from testbed.fidelity.sequence import SMALL, has_draws, measure_sequence
from testbed.fidelity.spread import measure_spread
from testbed.lab.tc import Direction, FieldCheck, Wire
from testbed.lab.tc.path import Way, ways


class Effort(StrEnum):
    """How much to measure: ``quick`` before every run, ``full`` for ``testbed calibrate``."""

    QUICK = "quick"
    FULL = "full"


QUICK_FRAMES, FULL_FRAMES = 200, 1_500
QUICK_PROBES, FULL_PROBES = 2, 20


def calibrate_links(
    network: Network,
    ns_of: Mapping[str, str],
    effort: Effort = Effort.FULL,
    precision: Precision = EXACT,
    within: bool = False,
) -> tuple[CalibrationRow, ...]:
    """Rows for every link and direction of a built network; never raises for a difference.

    Args:
        ns_of: namespace path of every node.
        within: a wire measures itself: frames begin at its rate stage and are seen as they
            leave its delay stage. Only the wires' namespaces are needed then, and the redirect
            where frames enter a wire is read back, not measured.

    The seeded generators are used up and started anew: they stand where ``apply`` left
    them when this returns. Apply again for counters that start at zero.
    """
    rows: list[CalibrationRow] = []
    for link in network.links:
        with Wire(ns_of[link.wire]) as wire:
            fields = wire.read_back(link)
            for way in ways(link):
                a, b = _ends(link, way, wire, ns_of, within)
                mine = [check for check in fields if check.direction is way.direction]
                rows.append(_field_row(link, way, mine))
                bench = bench_of(link, way, wire, a, b, precision)
                rows.extend(with_fields(row, way, mine) for row in _measure(bench, effort))
                wire.reseed(way)
    return tuple(rows)


def require(rows: tuple[CalibrationRow, ...]) -> None:
    """Raise FidelityError with every row that is not ok."""
    wrong = [row for row in rows if not row.ok]
    if wrong:
        listed = "\n".join(
            f"{row.link} {row.direction}: {row.quantity}: requested {row.requested}, "
            f"measured {row.measured or row.applied}, tolerance {row.tolerance}"
            for row in wrong
        )
        raise FidelityError(
            "calibrate", f"{len(wrong)} of {len(rows)} quantities", listed, "do not use this run"
        )


def _measure(bench: Bench, effort: Effort) -> list[CalibrationRow]:
    quick = effort is Effort.QUICK
    rows: list[CalibrationRow] = []
    if bench.rate is not None:
        frames = QUICK_FRAMES if quick else FULL_FRAMES
        live = bench.precision.live
        rows.append(measure_rate(bench, bench.largest() if live else bench.full(), frames))
        if not quick:
            if bench.largest() != bench.full():
                rows.append(measure_rate(bench, bench.largest(), frames // 4))
            rows.append(measure_buffer(bench, bench.largest()))
    probes = QUICK_PROBES if quick else FULL_PROBES
    rows.append(measure_delay(bench, plain(SMALL), probes))
    if not quick:
        rows.append(measure_delay(bench, bench.full(), probes))
        if has_draws(bench.way.spec):
            found, delays = measure_sequence(bench)
            rows.extend(found)
            if bench.way.spec.jitter:
                rows.append(measure_spread(bench, delays))
    return rows


def _ends(
    link: Link, way: Way, wire: Wire, ns_of: Mapping[str, str], within: bool
) -> tuple[Place, Place]:
    """The link's ends; or, within the wire, the devices that stand for them in this direction."""
    if not within:
        return _place(link.a, ns_of), _place(link.b, ns_of)
    source, sink = Place(wire.path, way.rate), Place(wire.path, way.leaves)
    return (source, sink) if way.direction is Direction.FORWARD else (sink, source)


def _place(end: End, ns_of: Mapping[str, str]) -> Place:
    if end.node not in ns_of:
        raise FidelityError("calibrate", end.node, "the built network has no such node")
    return Place(ns_of[end.node], end.interface)


def _field_row(link: Link, way: Way, mine: Sequence[FieldCheck]) -> CalibrationRow:
    """One row for all read-back fields of a direction; names those that differ."""
    wrong = [check for check in mine if not check.ok]
    return CalibrationRow(
        link=link.name,
        direction=way.direction.value,
        quantity=f"{len(mine)} fields read back",
        requested="as compiled",
        compiled=", ".join(f"{c.device} {c.field} {c.compiled}" for c in wrong),
        applied=", ".join(f"{c.device} {c.field} {c.applied}" for c in wrong),
        measured=f"{len(wrong)} differ",
        tolerance="equal",
        ok=not wrong,
    )
