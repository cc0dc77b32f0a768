"""Agents may open as many files and sockets as large pools need, and no more than they are let."""

from __future__ import annotations

import resource
from collections.abc import Callable

import pytest

from testbed_agents import descriptors
from testbed_agents.descriptors import ENOUGH, raise_descriptors

pytestmark = pytest.mark.unit
ENDLESS = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("before", "root", "after"),
    [
        ((1_024, ENDLESS), False, (ENOUGH, ENDLESS)),
        ((1_024, 1 << 20), False, (ENOUGH, 1 << 20)),
        ((1_024, 4_096), False, (4_096, 4_096)),
        ((1_024, 4_096), True, (ENOUGH, ENOUGH)),
        ((1 << 20, 1 << 20), False, (1 << 20, 1 << 20)),
        ((ENDLESS, ENDLESS), False, (ENDLESS, ENDLESS)),
    ],
)
def test_the_soft_limit_is_raised_as_far_as_it_may(
    monkeypatch: pytest.MonkeyPatch,
    before: tuple[int, int],
    root: bool,
    after: tuple[int, int],
) -> None:
    limit = [before]

    def set_limit(_: int, wanted: tuple[int, int]) -> None:
        if wanted[1] != limit[0][1] and not root:
            raise ValueError("not allowed to raise maximum limit")
        limit[0] = wanted

    get_limit: Callable[[int], tuple[int, int]] = lambda _: limit[0]  # noqa: E731
    monkeypatch.setattr(descriptors.resource, "getrlimit", get_limit)
    monkeypatch.setattr(descriptors.resource, "setrlimit", set_limit)
    raise_descriptors()
    assert limit[0] == after
