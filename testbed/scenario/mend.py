"""Finding more than the first layer of faults.

A scenario whose keys are wrong cannot be resolved, so what its names and numbers
mean would stay unchecked until the keys are mended. Here the wrong keys are left
out of a copy, so that the rest can be checked in the same go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic import ValidationError

from testbed.scenario.data import DataKind, names
from testbed.scenario.document import Document, KeyPath, Plain
from testbed.scenario.faults import written
from testbed.scenario.hardware_file import is_file_name
from testbed.scenario.nearest import listing
from testbed.scenario.profiles import hardware_profiles, kv_profiles


def without(document: Document, error: ValidationError) -> Document:
    """A copy of ``document`` without the keys that ``error`` complains about."""
    data: Plain = document.data
    for detail in error.errors(include_url=False):
        if detail["type"] != "missing":
            data = _drop(data, written(document.data, detail))
    rest = data if isinstance(data, dict) else {}
    return Document(document.name, rest, document.places, document.sources)


def without_nulls(document: Document, error: ValidationError) -> Document | None:
    """A copy without the nulls that ``error`` complains about: each key then has its default.

    None where there is no such null. A key that does not exist is not left out by one.
    """
    data: Plain = document.data
    for detail in error.errors(include_url=False):
        path = written(document.data, detail)
        stays = detail["type"] in ("missing", "extra_forbidden")
        if path and not stays and _is_null(document.data, path):
            data = _drop(data, path)
    if data == document.data or not isinstance(data, dict):
        return None
    return Document(document.name, data, document.places, document.sources)


def unknown_names(document: Document, beside: Path) -> Iterator[str]:
    """Faults of names that are looked up elsewhere, read from the raw data."""
    for path, known in _references(document.data, beside):
        value = _at(document.data, path)
        if isinstance(value, str) and value not in known:
            yield document.fault(path, listing(value, known))


def _references(data: dict[str, Plain], beside: Path) -> Iterator[tuple[KeyPath, Collection[str]]]:
    yield ("topology", "name"), names(DataKind.TOPOLOGIES, beside)
    links = data.get("links")
    if isinstance(links, dict):
        for link_class in links:
            yield ("links", link_class, "profile"), names(DataKind.TC_PROFILES, beside)
    profiles = kv_profiles().profiles
    yield ("shape", "kv"), profiles
    chosen = profiles.get(str(_at(data, ("shape", "kv"))))
    if chosen is not None:
        yield ("shape", "precision"), chosen.precisions
    if not is_file_name(str(_at(data, ("shape", "hardware")))):
        yield ("shape", "hardware"), hardware_profiles().profiles


def _at(data: Plain, path: KeyPath) -> Plain:
    current = data
    for part in path:
        if not isinstance(current, dict) or not isinstance(part, str):
            return None
        current = current.get(part)
    return current


def _is_null(data: Plain, path: KeyPath) -> bool:
    """Whether the mapping at the end of ``path`` has an explicit null there."""
    *above, last = path
    holder = _at(data, tuple(above))
    return isinstance(holder, dict) and isinstance(last, str) and holder.get(last, "") is None


def _drop(data: Plain, path: KeyPath) -> Plain:
    if not path:
        return data
    head, rest = path[0], path[1:]
    if isinstance(data, dict) and isinstance(head, str) and head in data:
        if not rest:
            return {key: value for key, value in data.items() if key != head}
        return {**data, head: _drop(data[head], rest)}
    if isinstance(data, list) and isinstance(head, int) and head < len(data):
        inner = [] if not rest else [_drop(data[head], rest)]
        return [*data[:head], *inner, *data[head + 1 :]]
    return data
