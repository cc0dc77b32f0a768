"""A name or a path becomes a checked ``Scenario``, or every fault at once.

::

    YAML ─document, extend─> plain data ─override─> ─faults.check─> ScenarioFile ─resolve─> Scenario
                                                                        │
                       topology, tc profiles, kv, hardware, models (looked up by name)
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from testbed.errors import ScenarioError
from testbed.scenario.data import DataKind, find
from testbed.scenario.document import Document
from testbed.scenario.extend import read_scenario
from testbed.scenario.faults import describe, in_order
from testbed.scenario.file import ScenarioFile
from testbed.scenario.mend import unknown_names, without, without_nulls
from testbed.scenario.override import override
from testbed.scenario.resolve import Resolver
from testbed.scenario.value import Scenario


def load_scenario(name_or_path: str, overrides: tuple[str, ...] = ()) -> Scenario:
    """Load a scenario by name or by path, with ``key.path=value`` overrides.

    Raises:
        ScenarioError: the file, an override, or anything that they name is wrong;
            carries every fault as ``file:line: key: reason``.
    """
    path = scenario_path(name_or_path)
    return load_document(override(read_scenario(path), overrides), path)


def load_recorded(path: Path) -> Scenario:
    """Load ``scenario.yaml`` of a run folder, which may be one of the field library.

    Raises:
        ScenarioError: as ``load_scenario``.
    """
    return load_document(read_scenario(path), path, recorded=True)


def load_document(document: Document, path: Path, recorded: bool = False) -> Scenario:
    """Load a scenario that is read already; ``path`` is where it was read from.

    Args:
        recorded: it lies in a run folder and was checked where it came from.

    Raises:
        ScenarioError: as ``load_scenario``; places are those of ``document``.
    """
    try:
        file = ScenarioFile.model_validate(document.data)
    except ValidationError as error:
        rest = without_nulls(document, error)
        if rest is not None:
            return load_document(rest, path, recorded)
        faults = [*describe(document, ScenarioFile, error), *unknown_names(document, path.parent)]
        rest = without(document, error)
        try:
            Resolver(rest, path, recorded).resolve(ScenarioFile.model_validate(rest.data))
        except ScenarioError as more:
            faults.extend(more.faults)
        except ValidationError:
            pass  # what is left still lacks required keys; their faults are listed above
        raise ScenarioError(document.name, in_order(faults)) from error
    return Resolver(document, path, recorded).resolve(file)


def scenario_path(name_or_path: str) -> Path:
    """Path of a scenario: a file where it looks like one, else a shipped name."""
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        return Path(name_or_path)
    return find(DataKind.SCENARIOS, name_or_path)
