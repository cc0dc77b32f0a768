"""Every data file loads; every quantity of a profile names its source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from testbed.scenario import load_profile, load_scenario, load_topology
from tests.repo.checkout import ROOT


def names(folder: str) -> list[str]:
    return sorted(path.stem for path in (ROOT / folder).glob("*.yaml"))


@pytest.mark.parametrize("name", names("scenarios"))
def test_every_scenario_loads(name: str) -> None:
    assert load_scenario(name).name == name


@pytest.mark.parametrize("name", names("topologies"))
def test_every_topology_loads(name: str) -> None:
    assert load_topology(name).name == name


@pytest.mark.parametrize("name", names("tc_profiles"))
def test_every_link_profile_loads(name: str) -> None:
    assert load_profile(name).name == name


def test_the_scenarios_of_the_pool_study_are_there() -> None:
    assert {"pool-wide-skewed", "pool-narrow-even"} <= set(names("scenarios"))


def unsourced(node: object, place: str = "", covered: bool = False) -> Iterator[str]:
    """Places of quantities (text that starts with a digit) that no source covers.

    A source covers the mapping that it stands in, and all below it.
    """
    if isinstance(node, dict):
        source = node.get("source")
        inside = covered or (isinstance(source, str) and len(source) > 5)
        for key, child in node.items():
            yield from unsourced(child, f"{place}.{key}", inside)
    elif isinstance(node, list):
        for number, child in enumerate(node):
            yield from unsourced(child, f"{place}[{number}]", covered)
    elif not covered and isinstance(node, str) and re.match(r"\d[\d_.e+-]* ", node):
        yield place


def test_a_quantity_without_a_source_would_be_found() -> None:
    text = "a: {value: 10 ms, source: 'measured'}\nb: {value: 20 ms}\nc: 2 x 10 Gbit/s\n"
    assert list(unsourced(YAML(typ="safe").load(text))) == [".b.value", ".c"]


@pytest.mark.parametrize(
    "path",
    sorted([*(ROOT / "tc_profiles").glob("*.yaml"), *(ROOT / "profiles").glob("*.yaml")]),
    ids=lambda path: path.stem,
)
def test_every_quantity_of_a_profile_says_where_it_is_from(path: Path) -> None:
    assert list(unsourced(YAML(typ="safe").load(path.read_text("utf-8")))) == []
