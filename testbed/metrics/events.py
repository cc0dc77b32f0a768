"""Reads ``events/*.jsonl`` line by line into typed columns, within bounded memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testbed.contract.event import Kind
from testbed.errors import AnalysisError
from testbed.metrics.table import ABSENT, Codes, Growing, Table

_KINDS = {kind.value: kind for kind in Kind}
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Events:
    """Every event of a run: one table a kind (empty where none was seen)."""

    tables: Mapping[Kind, Table]
    names: tuple[str, ...]
    """What the codes of nodes and texts stand for."""
    rank: Codes
    """Alphabetical place of each name."""

    def __getitem__(self, kind: Kind) -> Table:
        return self.tables[kind]

    def __len__(self) -> int:
        return sum(table.t.size for table in self.tables.values())


def read_events(run_folder: Path) -> Events:
    """Read all events of ``run_folder``.

    Raises:
        AnalysisError: there are none, or a line is not an event of a known kind with
            the fields of its kind; the message names file and line.
    """
    folder = run_folder / "events"
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise AnalysisError(
            "read events", str(folder), "holds no *.jsonl file", "see logs/ and run it again"
        )
    reader = _Reader()
    for path in files:
        reader.read(path)
    return reader.finish()


class _Reader:
    def __init__(self) -> None:
        self._growing = {kind: Growing(kind) for kind in Kind}
        self._codes: dict[str, int] = {}

    def read(self, path: Path) -> None:
        number = 0
        try:
            with path.open("rb") as stream:
                for line in stream:
                    number += 1
                    self._take(json.loads(line))
        except OSError as cause:
            raise AnalysisError(
                "read events", str(path), cause.strerror or str(cause), "run the scenario again"
            ) from cause
        except (ValueError, RecursionError, _BadLineError) as cause:
            raise AnalysisError(
                "read events",
                f"{path}:{number}",
                str(cause),
                "the process was cut short or the file was edited; run the scenario again",
            ) from cause

    def _take(self, fields: object) -> None:
        if not isinstance(fields, dict):
            raise _BadLineError("is no JSON object")
        kind = _KINDS.get(_text(fields, "kind"))
        if kind is None:
            raise _BadLineError(f"has the unknown kind {fields['kind']!r}")
        table = self._growing[kind]
        # Look at every field before the first is kept, so that columns stay aligned.
        t, seq, size = _integer(fields, "t"), _integer(fields, "seq"), _integer(fields, "size")
        node = self._code(_text(fields, "node"))
        integers = [_integer(fields, name) for name in table.integers]
        optional = [_integer(fields, name) if name in fields else ABSENT for name in table.optional]
        texts = [self._code(_text(fields, name)) for name in table.texts]
        table.t.append(t)
        table.seq.append(seq)
        table.size.append(size)
        table.node.append(node)
        for column, value in zip(table.integers.values(), integers, strict=True):
            column.append(value)
        for column, value in zip(table.optional.values(), optional, strict=True):
            column.append(value)
        for column, code in zip(table.texts.values(), texts, strict=True):
            column.append(code)

    def _code(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    def finish(self) -> Events:
        names = tuple(self._codes)
        rank = np.empty(len(names), dtype=np.int32)
        rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        tables: dict[Kind, Table] = {}
        for kind in Kind:
            tables[kind] = self._growing.pop(kind).finish(rank)  # frees the unsorted columns
        return Events(tables=tables, names=names, rank=rank)


class _BadLineError(Exception):
    """A line is JSON but not an event."""


def _integer(fields: dict[str, object], name: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not -_INT64 <= value < _INT64:
        raise _BadLineError(f"field {name!r} is {value!r}, not a whole number of 64 bits")
    return value


def _text(fields: dict[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise _BadLineError(f"field {name!r} is {value!r}, not text")
    return value
