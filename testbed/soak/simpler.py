"""What makes a fault simpler: fewer times and subjects, one way, milder, shorter, rounder. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from testbed.contract.record import Record
from testbed.scenario.ailments import OnPairs
from testbed.scenario.timed import OnLinks, Timed
from testbed.soak.draw import RULES, fault_from
from testbed.soak.ground import Ground
from testbed.soak.schedule import Drawn, keys_of_fault, kind_word
from testbed.units import Duration, Rate, Share
from testbed.units.quantity import Quantity

_GRIDS_NS = (1_000_000_000, 500_000_000, 100_000_000, 10_000_000, 1_000_000)
_SMALLEST: Mapping[type[Quantity], int] = {
    Duration: 1_000_000, Share: 10**9, Rate: 8_000,
}  # fmt: skip
"""Steps below which nothing is made smaller: 1 ms, 1 ppm, 8 kbit/s."""
_TIMES = frozenset(Timed.model_fields)
_WHERE = frozenset({"kind", "link", "node", "pair", "direction"})


def simpler(fault: Drawn, ground: Ground) -> Iterator[Drawn]:
    """Simpler faults in the order in which they are worth a run: what takes most away comes first.

    Each is nearer to an end, so that taking the first that still fails, again and again, ends.
    """
    keys = keys_of_fault(fault)
    for changed in _changes(fault, keys, ground):
        try:
            found = fault_from(changed)
        except ValidationError:
            continue
        if found != fault:
            yield found


def _changes(
    fault: Drawn,
    keys: Mapping[str, object],
    ground: Ground,
) -> Iterator[dict[str, object]]:
    once = {key: value for key, value in keys.items() if key not in ("every", "times")}
    if fault.times is not None:
        yield once
        if fault.times > 2:
            yield {**keys, "times": fault.times // 2}
    if "probability" in keys:
        yield {key: value for key, value in keys.items() if key != "probability"}
    yield from _fewer(fault, keys, ground)
    if isinstance(fault, OnLinks) and fault.direction == "both":
        yield {**keys, "direction": "forward"}
        yield {**keys, "direction": "backward"}
    for name in sorted(set(type(fault).model_fields) - _TIMES - _WHERE):
        for value in _milder(getattr(fault, name), name in RULES[kind_word(fault)].more_is_milder):
            yield {**keys, name: value}
    if fault.duration is not None:
        for part in (8, 2):
            if fault.duration.ns // part >= _SMALLEST[Duration]:
                yield {**keys, "duration": str(_rounder(fault.duration.ns // part))}
    for at in _rounder_times(0 if fault.at is None else fault.at.ns):
        yield {**keys, "at": str(at)}


def _fewer(fault: Drawn, keys: Mapping[str, object], ground: Ground) -> Iterator[dict[str, object]]:
    """One subject instead of several; a class is all of its links."""
    if isinstance(fault, OnPairs):
        return
    key = "link" if isinstance(fault, OnLinks) else "node"
    named = keys[key]
    names = [named] if isinstance(named, str) else named
    if not isinstance(names, list):
        return
    single = (
        [link for name in names for link in ground.members(str(name))]
        if isinstance(fault, OnLinks)
        else names
    )
    if len(names) > 1 or single != names:
        for name in dict.fromkeys(single):
            yield {**keys, key: name}
    if len(names) > 2:
        for left_out in names:
            yield {**keys, key: [name for name in names if name != left_out]}


def _milder(value: object, more_is_milder: bool) -> Iterator[object]:
    """The same value, so much nearer to doing nothing; as a file writes it."""
    match value:
        case Quantity():
            for part in (8, 2):
                steps = value.steps * part if more_is_milder else value.steps // part
                kind = type(value)
                in_range = _SMALLEST.get(kind, 1) <= steps <= kind.MAXIMUM
                if in_range:
                    yield str(kind(steps // 8 * 8 if kind is Rate else steps))
        case bool():
            if value:
                yield False
        case int():
            if more_is_milder:
                yield from (value * 8 + 8, value * 2, value + 1) if value < 1_000 else ()
            elif value > 1:
                yield value // 2
        case float():
            nearer = round(1 + (value - 1) / 4, 1)
            if 1 < nearer < value:
                yield nearer
        case Record():
            plain = value.model_dump(mode="json", exclude_none=True)
            for name in type(value).model_fields:
                for changed in _milder(getattr(value, name), False):
                    yield {**plain, name: changed}


def _rounder(length_ns: int) -> Duration:
    """The length with two digits at most."""
    step = 10 ** max(0, len(str(length_ns)) - 2)
    return Duration(max(1, length_ns // step * step))


def _rounder_times(at_ns: int) -> Iterator[Duration]:
    """Earlier and rounder: on ever finer grids."""
    if at_ns:
        yield Duration(0)
    for grid in _GRIDS_NS:
        if at_ns % grid and at_ns > grid:
            yield Duration(at_ns // grid * grid)
