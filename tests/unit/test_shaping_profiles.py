"""Every profile that ships compiles: what the scenario room lets through can be built."""

from __future__ import annotations

import pytest

from testbed.contract.link import LinkSpec
from testbed.scenario.data import DataKind, names
from testbed.scenario.linkspec import compose
from testbed.scenario.named import load_profile
from testbed.scenario.profile import LinkChoice
from testbed.shaping.compile import StagePair, compile_link


@pytest.mark.parametrize("name", names(DataKind.TC_PROFILES))
def test_a_shipped_profile_compiles(name: str) -> None:
    spec = compose(load_profile(name), LinkChoice())
    assert isinstance(spec, LinkSpec)
    assert isinstance(compile_link(spec, name), StagePair)
