"""Where data files lie: inside the package when installed, beside it in a checkout.

A scenario may bring its own topologies and tc profiles: folders of these names beside
the scenario file are searched first.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import testbed
from testbed.errors import ScenarioError
from testbed.scenario.nearest import listing

_PACKAGE = Path(testbed.__file__).resolve().parent


class DataKind(StrEnum):
    """A folder of data files."""

    TOPOLOGIES = "topologies"
    TC_PROFILES = "tc_profiles"
    SCENARIOS = "scenarios"
    PROFILES = "profiles"


def folder(kind: DataKind, package: Path = _PACKAGE) -> Path:
    """The folder of ``kind``: inside an installed ``package``, else beside it."""
    installed = package / "data" / kind.value
    return installed if installed.is_dir() else package.parent / kind.value


def field_folder(package: Path = _PACKAGE) -> Path:
    """The field library: scenarios of failures that were reported in public."""
    return folder(DataKind.SCENARIOS, package) / "field"


def field_names() -> tuple[str, ...]:
    """Names of the scenarios of the field library, sorted."""
    return tuple(sorted(path.stem for path in field_folder().glob("*.yaml")))


def names(kind: DataKind, beside: Path | None = None) -> tuple[str, ...]:
    """Names of all files of ``kind``, sorted; with those in the folder ``beside``."""
    return tuple(sorted({path.stem for place in _places(kind, beside) for path in place}))


def find(kind: DataKind, name: str, beside: Path | None = None) -> Path:
    """Path of the data file ``name``; one in ``beside/<kind>/`` goes before a shipped one.

    A scenario may also be one of the field library.

    Raises:
        ScenarioError: no such file; the message lists the names that exist.
    """
    for place in _places(kind, beside):
        for path in place:
            if path.stem == name:
                return path
    if kind is DataKind.SCENARIOS and name in field_names():
        return field_folder() / f"{name}.yaml"
    raise ScenarioError(name, (f"{kind.value}: {listing(name, names(kind, beside))}",))


def shipped_or_beside(kind: DataKind, name: str, here: Path) -> Path | None:
    """The file ``name`` in the folder ``here``, else the shipped one; None where there is none."""
    shipped = [folder(kind), *([field_folder()] if kind is DataKind.SCENARIOS else [])]
    for place in (here, *shipped):
        path = place / f"{name}.yaml"
        if "/" not in name and path.is_file():
            return path
    return None


def _places(kind: DataKind, beside: Path | None) -> Iterator[tuple[Path, ...]]:
    if beside is not None:
        yield tuple(sorted((beside / kind.value).glob("*.yaml")))
    yield tuple(sorted(folder(kind).glob("*.yaml")))
