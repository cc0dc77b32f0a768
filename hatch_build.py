"""Puts the data folders into the wheel as testbed/data/<folder>.

They are not copied for an editable install: a checkout reads them where they lie, so an
edited scenario takes effect at once and no stale copy can be read by mistake.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DATA = ("topologies", "tc_profiles", "profiles", "scenarios")
SUFFIXES = (".yaml", ".jsonl", ".py")


class DataFolders(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        for name in DATA:
            folder = Path(self.root) / name
            for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES):
                inside = path.relative_to(self.root).as_posix()
                build_data["force_include"][str(path)] = f"testbed/data/{inside}"
