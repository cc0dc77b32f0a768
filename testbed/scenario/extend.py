"""``extends:``: a scenario that says only in what it differs from another.

::

    pdd-paper.yaml ──┐
                     ├─ merged ─> one document, each key at the line where it was written
    cdc-pd-paper.yaml┘
"""

from __future__ import annotations

from pathlib import Path

from testbed.errors import ScenarioError
from testbed.scenario.data import DataKind, names, shipped_or_beside
from testbed.scenario.document import Document, KeyPath, Plain, read_document
from testbed.scenario.faults import TELLING
from testbed.scenario.nearest import listing

KEY = "extends"
ADDED = ("assumptions",)
"""Lists that grow; any other list replaces the one it extends."""
OWN = ("name", "description")
"""What every file says itself."""


def read_scenario(path: Path, below: tuple[Path, ...] = ()) -> Document:
    """The file at ``path``, laid over the one that it extends, if any.

    ``below`` are the files that led here, for the detection of circles.

    Raises:
        ScenarioError: as ``read_document``; or the other file is unknown or leads in a circle.
    """
    document = read_document(path)
    if KEY not in document.data:
        return document
    name = document.data[KEY]
    if not isinstance(name, str):
        raise _fault(document, "must be the name of a scenario")
    base = shipped_or_beside(DataKind.SCENARIOS, name, path.parent)
    if base is None:
        raise _fault(document, listing(name, _known(path.parent)))
    before = (*below, path.resolve())
    if base.resolve() in before:
        raise _fault(document, "leads in a circle; extend a scenario that stands alone")
    lower = read_scenario(base, before)
    data = {key: value for key, value in lower.data.items() if key not in OWN}
    places = {at: place for at, place in lower.places.items() if at and at[0] not in OWN}
    upper = {key: value for key, value in document.data.items() if key != KEY}
    merged = laid_over(data, upper, (), places, document.places)
    places[()] = document.places[()]
    sources = (*lower.sources, base)
    return Document(document.name, merged, places, sources)


def laid_over(
    lower: dict[str, Plain],
    upper: dict[str, Plain],
    path: KeyPath,
    places: dict[KeyPath, str],
    written: dict[KeyPath, str],
) -> dict[str, Plain]:
    """``upper`` laid over ``lower``; ``places`` is brought up to date."""
    merged = dict(lower)
    for key, value in upper.items():
        here = (*path, key)
        known = lower.get(key)
        if value is None and key in lower:
            del merged[key]
            _move(here, places, {})
        elif isinstance(value, dict) and isinstance(known, dict) and _alike(known, value):
            merged[key] = laid_over(known, value, here, places, written)
            places[here] = written[here]
        elif len(path) == 0 and key in ADDED and isinstance(value, list):
            first = known if isinstance(known, list) else []
            merged[key] = [*first, *value]
            for number in range(len(value)):
                places[(*here, len(first) + number)] = written[(*here, number)]
        else:
            merged[key] = value
            _move(here, places, written)
    return merged


def _alike(lower: dict[str, Plain], upper: dict[str, Plain]) -> bool:
    """Whether two mappings can be mixed: those of different kinds have other keys."""
    return all(
        key not in upper or upper[key] == lower.get(key, default)
        for key, default in TELLING.items()
    )


def _move(path: KeyPath, places: dict[KeyPath, str], written: dict[KeyPath, str]) -> None:
    """Everything at and below ``path`` stands where ``written`` says, and only there."""
    for known in [known for known in places if known[: len(path)] == path]:
        del places[known]
    places |= {known: place for known, place in written.items() if known[: len(path)] == path}


def _known(beside: Path) -> tuple[str, ...]:
    return tuple(sorted({*names(DataKind.SCENARIOS), *(p.stem for p in beside.glob("*.yaml"))}))


def _fault(document: Document, reason: str) -> ScenarioError:
    return ScenarioError(document.name, (document.fault((KEY,), reason),))
