"""``--set key.path=value``: overrides with the same checks as the file itself."""

from __future__ import annotations

from testbed.errors import ScenarioError
from testbed.scenario.document import MAX_DEPTH, Document, KeyPath, Plain, parse_value
from testbed.scenario.nearest import brief

_FLAT: tuple[KeyPath, ...] = (("expect", "metrics"),)
"""Mappings whose keys hold dots of their own."""


_SIGNS = ">|%@`"
"""What no plain value of YAML may begin with."""


def override(document: Document, settings: tuple[str, ...]) -> Document:
    """``document`` with each ``key.path=value`` set; later ones win.

    Raises:
        ScenarioError: a setting without ``=`` or without a value, or one that goes through a
            plain value. ``key=null`` removes an optional value, ``key=`` is a slip.
    """
    data: Plain = document.data
    places = dict(document.places)
    faults: list[str] = []
    for setting in settings:
        key, equals, text = setting.partition("=")
        path = _path(key.strip())
        where = f"--set {brief(key.strip())}"
        if not equals or not all(path):
            faults.append(f"--set: {brief(setting)}: write key.path=value")
            continue
        if len(path) > MAX_DEPTH:
            faults.append(f"{where}: nested deeper than {MAX_DEPTH} levels")
            continue
        try:
            value, inner = parse_value(text, where)
        except ScenarioError as error:
            faults.extend(
                f"{where}: {fault.removeprefix(where).partition(': ')[2]}{_hint(key, text)}"
                for fault in error.faults
            )
            continue
        if value == "" and _hint(key, text):  # a block of text that has no lines
            faults.append(f"{where}: has no value{_hint(key, text)}")
            continue
        if () not in inner:
            faults.append(f"{where}: has no value; write null to leave it out")
            continue
        changed = _with(data, path, value)
        if changed is None:
            faults.append(f"{where}: goes through a value that holds no keys")
            continue
        data = changed
        for length in range(1, len(path) + 1):
            places.setdefault(path[:length], where)
        stale = [known for known in places if known[: len(path)] == path]
        for known in stale:
            del places[known]
        places |= {(*path, *rest): where for rest in inner}
        places[path] = where
    if faults:
        raise ScenarioError(document.name, tuple(faults))
    if not isinstance(data, dict):
        return document
    return Document(document.name, data, places, document.sources)


def _hint(key: str, text: str) -> str:
    """Where a value begins with a sign of YAML: how to write it so that it is text."""
    if text.strip()[:1] not in tuple(_SIGNS):
        return ""
    quoted = f"'{brief(key.strip())}=\"{brief(text.strip())}\"'"
    return f"; a value that begins with {text.strip()[0]} needs quotes of its own: --set {quoted}"


def _path(key: str) -> tuple[str, ...]:
    parts = tuple(key.split("."))
    for flat in _FLAT:
        if parts[: len(flat)] == flat and len(parts) > len(flat):
            return (*parts[: len(flat)], ".".join(parts[len(flat) :]))
    return parts


def _with(current: Plain, path: tuple[str, ...], value: Plain) -> Plain:
    """A copy of ``current`` with ``value`` at ``path``; None where that cannot be."""
    if not path:
        return value
    if current is None:
        current = {}
    if not isinstance(current, dict):
        return None
    inner = _with(current.get(path[0]), path[1:], value)
    if inner is None and (value is not None or len(path) > 1):
        return None
    return {**current, path[0]: inner}
