"""One JSONL line with typed access: a wrong line is an error that names file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from testbed.contract.attempt import attempt_id
from testbed.errors import AnalysisError


class Line:
    """The fields of one line; every getter checks the type it promises."""

    __slots__ = ("_fields", "_number", "_path")

    def __init__(self, path: Path, number: int, fields: dict[str, object]) -> None:
        self._path = path
        self._number = number
        self._fields = fields

    def integer(self, key: str) -> int:
        """Return an integer field (JSON booleans are not integers)."""
        value = self._fields.get(key)
        if type(value) is int:
            return value
        raise self.fault(f"field {key!r} is {value!r}, not an integer")

    def integer_or(self, key: str, default: int) -> int:
        """Return an integer field, or ``default`` where the event kind lacks it."""
        return self.integer(key) if key in self._fields else default

    def text(self, key: str) -> str:
        """Return a text field."""
        value = self._fields.get(key)
        if isinstance(value, str):
            return value
        raise self.fault(f"field {key!r} is {value!r}, not text")

    def truth(self, key: str) -> bool:
        """Return a field that is true or false."""
        value = self._fields.get(key)
        if isinstance(value, bool):
            return value
        raise self.fault(f"field {key!r} is {value!r}, neither true nor false")

    def number(self, key: str) -> float:
        """Return a number, whole or not."""
        value = self._fields.get(key)
        if type(value) is int or type(value) is float:
            return float(value)
        raise self.fault(f"field {key!r} is {value!r}, not a number")

    def text_or_none(self, key: str) -> str | None:
        """Return a text field, or None where the line lacks it."""
        return self.text(key) if key in self._fields else None

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of integers."""
        value = self._fields.get(key)
        if isinstance(value, list) and all(type(item) is int for item in value):
            return tuple(value)
        raise self.fault(f"field {key!r} is not a list of integers")

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return a list of numbers."""
        value = self._fields.get(key)
        if isinstance(value, list) and all(type(item) in (int, float) for item in value):
            return tuple(float(item) for item in value)
        raise self.fault(f"field {key!r} is not a list of numbers")

    def counts(self, key: str) -> dict[int, int]:
        """Return counts by a whole number."""
        value = self._fields.get(key)
        if isinstance(value, dict) and all(
            name.isdecimal() and type(count) is int for name, count in value.items()
        ):
            return {int(name): count for name, count in value.items()}
        raise self.fault(f"field {key!r} is not a table of counts")

    def fault(self, cause: str) -> AnalysisError:
        """Build the error that names this line."""
        return AnalysisError(
            "read record",
            f"{self._path}:{self._number}",
            cause,
            "the run was cut short or the file was edited; run the scenario again",
        )


def lines(path: Path) -> Iterator[Line]:
    """Stream a JSONL file. Raises AnalysisError at the first line that is not an object."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise AnalysisError(
            "read record",
            str(path),
            error.strerror or str(error),
            "is this a run folder, and is it whole? run the scenario again",
        ) from error
    with stream:
        for number, text in enumerate(stream, start=1):
            try:
                fields: object = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise Line(path, number, {}).fault(f"not JSON ({error})") from error
            if not isinstance(fields, dict):
                raise Line(path, number, {}).fault("not a JSON object")
            yield Line(path, number, fields)


def job_of(line: Line) -> int:
    """The job that an event belongs to: its request's attempt."""
    return attempt_id(line.integer("req"), line.integer_or("attempt", 0))
