"""docs/scenario.md names every key, unit and profile that the models know."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import BaseModel

from testbed.scenario.data import DataKind, folder, names
from testbed.scenario.file import ScenarioFile
from testbed.scenario.profile import Profile
from testbed.units import Duration, Frequency, Rate, Share, Size, Tokens

pytestmark = pytest.mark.unit

DOCS = folder(DataKind.SCENARIOS).parent / "docs"
TEXT = (DOCS / "scenario.md").read_text() + (DOCS / "faults.md").read_text()
WORDS = set(TEXT.replace("`", " ").replace(",", " ").replace(":", " ").replace("{", " ").split())


def models_in(annotation: object) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {found for part in get_args(annotation) for found in models_in(part)}


def keys_of(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[str]:
    if model in seen or model.__name__.startswith("Sourced["):
        return set()
    seen.add(model)
    keys = set(model.model_fields)
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            keys |= keys_of(inner, seen)
    return keys


# The transition shares of the loss models are those of tc-netem(8).
UNDOCUMENTED = {"p", "r", "bad_loss", "good_loss", "p13", "p31", "p32", "p23", "p14"}


@pytest.mark.parametrize("model", [ScenarioFile, Profile])
def test_every_key_is_documented(model: type[BaseModel]) -> None:
    keys = keys_of(model, set())
    assert len(keys) > 10
    assert keys - UNDOCUMENTED - WORDS == set()


@pytest.mark.parametrize("kind", [Duration, Frequency, Rate, Share, Size, Tokens])
def test_every_unit_is_documented(kind: type[Rate]) -> None:
    assert set(kind.UNITS) - WORDS == set()


def test_every_shipped_profile_and_topology_is_documented() -> None:
    known = {*names(DataKind.TC_PROFILES), *names(DataKind.TOPOLOGIES)}
    assert {name for name in known if f"`{name}`" not in TEXT} == set()
