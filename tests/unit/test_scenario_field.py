"""The field library: each failure as it was reported, named by a check, and its remedy."""

from __future__ import annotations

import pytest

from testbed.contract.defect import NOTICED_BY
from testbed.scenario import load_scenario
from testbed.scenario.data import field_names

REPORTED = [name for name in field_names() if name.endswith("-reported")]
OWN = ("name", "description", "assumptions", "defects", "expect")


def test_there_are_pairs_and_nothing_else() -> None:
    assert len(REPORTED) > 5
    remedies = {name.removesuffix("-reported") + "-remedy" for name in REPORTED}
    assert {*REPORTED, *remedies} == set(field_names())


@pytest.mark.parametrize("name", REPORTED)
def test_what_was_reported_names_the_check_or_figure_that_misses_the_protection(name: str) -> None:
    file = load_scenario(name).file
    assert file.name == name
    assert file.defects
    noticed = {NOTICED_BY[one] for one in file.defects if one in NOTICED_BY}
    assert noticed <= set(file.expect.violations)
    assert (file.expect.verdict != "pass") == bool(noticed)
    assert noticed or file.expect.metrics, "figures have to tell of it"


@pytest.mark.parametrize("name", REPORTED)
def test_the_remedy_is_the_same_with_all_protections(name: str) -> None:
    reported = load_scenario(name).file
    remedy = load_scenario(name.removesuffix("-reported") + "-remedy").file
    assert (remedy.defects, remedy.expect.verdict, remedy.expect.violations) == ((), "pass", ())
    for key in type(reported).model_fields:
        if key not in OWN:
            assert getattr(remedy, key) == getattr(reported, key), key
