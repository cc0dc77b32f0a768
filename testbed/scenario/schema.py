"""JSON Schemas of all data files, for completion in editors.

``python -m testbed.scenario.schema [FOLDER]`` writes them (default ``docs/schema``);
a test holds the files in the repository against this.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from testbed.scenario.file import ScenarioFile
from testbed.scenario.profile import Profile
from testbed.scenario.profiles import HardwareFile, KvFile, ModelFile
from testbed.scenario.topology import Topology

MODELS: dict[str, type[BaseModel]] = {
    "scenario": ScenarioFile,
    "topology": Topology,
    "tc-profile": Profile,
    "kv": KvFile,
    "hardware": HardwareFile,
    "models": ModelFile,
}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text(name: str) -> str:
    """The schema of one kind of file, as the text of its JSON file."""
    schema = {"$schema": DIALECT, **MODELS[name].model_json_schema()}
    if name == "scenario":
        schema = _extendable(schema)
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _extendable(schema: dict[str, object]) -> dict[str, object]:
    """A scenario, or a part of one that says which other it extends.

    What an extending file says need not be whole, so an editor checks only its first keys.
    """
    whole = {
        key: schema.pop(key) for key in ("properties", "required", "additionalProperties", "type")
    }
    name = {"type": "string", "description": "Name of the scenario that this one differs from."}
    return {
        **schema,
        "type": "object",
        "if": {"required": ["extends"]},
        "then": {"properties": {"extends": name}, "required": ["name", "description"]},
        "else": whole,
    }


def write_schemas(target: Path) -> tuple[Path, ...]:
    """Write all schemas into ``target``; returns their paths."""
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name in MODELS:
        path = target / f"{name}.schema.json"
        path.write_text(schema_text(name), encoding="utf-8")
        written.append(path)
    return tuple(written)


if __name__ == "__main__":
    for path in write_schemas(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schema")):
        print(path)
