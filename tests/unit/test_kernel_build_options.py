"""Kernel options: what is asked, and that a silent loss of one is noticed."""

from __future__ import annotations

import pytest

from testbed.errors import UsageError
from testbed.lab.guest.kernel.options import Option, fragment, known_to, lab_options, missing, parse


def test_the_options_that_make_runs_repeat_are_in_the_shipped_list() -> None:
    wanted = {o.name: o.value for o in lab_options()}
    assert wanted["CONFIG_UML_TIME_TRAVEL_SUPPORT"] == "y"
    assert wanted["CONFIG_UML_RANDOM"] is None
    assert wanted["CONFIG_HW_RANDOM"] is None
    assert wanted["CONFIG_NET_SCH_NETEM"] == "y"


def test_no_option_is_asked_for_twice() -> None:
    names = [o.name for o in lab_options()]
    assert len(names) == len(set(names))


def test_younger_options_are_not_asked_of_older_kernels() -> None:
    old = {o.name for o in known_to(lab_options(), (6, 6))}
    new = {o.name for o in known_to(lab_options(), (6, 12))}
    assert new - old == {"CONFIG_MEMCG_V1"}


def test_the_fragment_is_read_back_as_it_was_written() -> None:
    plain = tuple(Option(o.name, o.value) for o in lab_options())
    assert parse(fragment(lab_options())) == plain


@pytest.mark.parametrize("line", ["CONFIG_NET", "NET=y", "CONFIG_NET = y", "CONFIG_A=y # soon"])
def test_a_line_that_is_no_option_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="line 2"):
        parse(f"# a comment\n{line}\n")


def test_missing_names_each_option_that_came_out_differently() -> None:
    wanted = parse("CONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\n# CONFIG_D is not set\n")
    final = 'CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\nCONFIG_TEXT="two words # here"\n'
    assert [o.name for o in missing(wanted, final)] == ["CONFIG_B", "CONFIG_C"]
