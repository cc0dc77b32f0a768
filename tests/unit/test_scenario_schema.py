"""The published JSON Schemas are those of the models, and data files point at them."""

from __future__ import annotations

import json
import re

import pytest

from testbed.scenario.data import DataKind, folder
from testbed.scenario.schema import MODELS, schema_text
from testbed.units import Duration

pytestmark = pytest.mark.unit

ROOT = folder(DataKind.SCENARIOS).parent


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_published_schema_is_current(name: str) -> None:
    path = ROOT / "docs" / "schema" / f"{name}.schema.json"
    assert path.read_text() == schema_text(name), "run python -m testbed.scenario.schema"


@pytest.mark.parametrize("kind", list(DataKind))
def test_every_data_file_names_its_schema(kind: DataKind) -> None:
    files = sorted(folder(kind).glob("*.yaml"))
    assert files
    for file in files:
        first = file.read_text().splitlines()[0]
        found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
        assert found is not None, file
        assert (file.parent / found[1]).is_file(), file


def test_a_quantity_offers_its_pattern_and_examples() -> None:
    schema = json.loads(schema_text("scenario"))
    measure = schema["$defs"]["WindowChoice"]["properties"]["measure"]
    for example in measure["examples"]:
        assert re.fullmatch(measure["pattern"], example)
        Duration.parse(example)
    assert not re.fullmatch(measure["pattern"], "10")
