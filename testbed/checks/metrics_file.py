"""``metrics.json`` by dotted name, for bounds, findings and the report.

Names are those of the contract (``transfer.p99_s``). A metric that does not apply to
a run is null and comes back as None; a name that is not there is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import AnalysisError

_AGAIN = "compute it again: testbed report FOLDER"


@dataclass(frozen=True, slots=True)
class MetricsFile:
    """All metrics of one run; ``tree`` is the parsed JSON object."""

    path: Path
    tree: Mapping[str, object]

    def __contains__(self, name: str) -> bool:
        return any(known == name for known, _ in self.leaves())

    def leaves(self) -> Iterator[tuple[str, object]]:
        """Yield (dotted name, value) of every leaf; empty objects are leaves too."""
        yield from _leaves("", self.tree)

    def number(self, name: str) -> float | None:
        """Return a metric, None where it is null.

        Raises:
            AnalysisError: there is no metric of that name, or it is not a number.
        """
        value: object = self.tree
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                known = ", ".join(sorted(leaf for leaf, _ in self.leaves()))
                raise AnalysisError(
                    "look up metric", name, f"{self.path} has only: {known}",
                    "name one of these",
                )  # fmt: skip
            value = value[part]
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise AnalysisError(
                "look up metric", name, f"it is {value!r}, not a number", "name a number"
            )
        return float(value)

    def below(self, name: str) -> dict[str, float]:
        """The numbers below a dotted name, by the rest of their names; empty without any."""
        start = f"{name}."
        return {
            leaf.removeprefix(start): float(value)
            for leaf, value in self.leaves()
            if leaf.startswith(start)
            and isinstance(value, int | float)
            and not isinstance(value, bool)
        }

    def required(self, name: str) -> float:
        """Return a metric that this run must have."""
        value = self.number(name)
        if value is None:
            raise AnalysisError(
                "look up metric", name, f"it is null in {self.path}",
                "this run has no such figure; take a run in which it applies",
            )  # fmt: skip
        return value

    def text(self, name: str) -> str | None:
        """Return a top-level text metric such as ``timeline_sha256``; None where null."""
        value = self.tree.get(name)
        return value if isinstance(value, str) else None


def read_metrics(path: Path) -> MetricsFile:
    """Read ``metrics.json``."""
    try:
        content: object = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise AnalysisError("read metrics", str(path), str(error), _AGAIN) from error
    if not isinstance(content, dict):
        raise AnalysisError("read metrics", str(path), "not a JSON object", _AGAIN)
    return MetricsFile(path, content)


def _leaves(prefix: str, tree: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from _leaves(f"{name}.", value)
        else:
            yield name, value
