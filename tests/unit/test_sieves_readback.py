"""What the kernel says of programs on a wire, against what its link is meant to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.contract.link import LinkSpec
from testbed.contract.sieve import Hold, Sieve
from testbed.lab.tc.compare import check_way
from testbed.lab.tc.dump import Entry
from testbed.lab.tc.path import ways
from testbed.lab.tc.request import EGRESS, FILTER_INFO, sieve_info
from testbed.shaping import gate_program, sieve_program
from testbed.shaping.attribute import attribute, u32
from testbed.shaping.compile import compile_link
from testbed.shaping.netlink_bpf import A_ID, A_TAG
from testbed.shaping.qdisc import Gate
from tests.unit.test_shaping_readback import DEVICES, LINK, SPEC, entry

pytestmark = pytest.mark.unit
SIEVES = (Sieve(kind="blackhole", number=3), Sieve(kind="syn-loss", number=7, share=0.5))
MEANT = SPEC.model_copy(
    update={"sieves": SIEVES, "gate_ns": 10_000, "hold": Hold(stop_ns=10_000, each_ns=90_000)}
)


def loaded(tag: bytes, info: int) -> Entry:
    options = attribute(A_TAG, tag) + u32(A_ID, 9)
    return replace(entry("wb", EGRESS, "bpf", options), info=info)


def programs(spec: LinkSpec) -> list[Entry]:
    """All programs of one direction, as the kernel lists them."""
    stages = compile_link(spec)
    found = [loaded(sieve_program.tag(one), sieve_info(one.number)) for one in stages.sieves]
    gates = (one for one in stages.delay if isinstance(one, Gate))
    return found + [loaded(gate_program.tag(one), FILTER_INFO) for one in gates]


def wrong(spec: LinkSpec, there: list[Entry]) -> list[str]:
    """Fields about programs that differ."""
    forward, _ = ways(LINK.model_copy(update={"forward": spec}))

    def filters(index: int, parent: int) -> tuple[Entry, ...]:
        return tuple(one for one in there if (one.index, one.parent) == (index, parent))

    words = ("sieve", "gate", "program", "departure")
    return [
        check.field
        for check in check_way(forward, DEVICES, (), filters)
        if not check.ok and any(word in check.field for word in words)
    ]


def test_programs_as_planned_have_no_difference() -> None:
    assert wrong(MEANT, programs(MEANT)) == []
    assert wrong(SPEC, []) == []


def test_each_program_is_missed_where_it_is_not() -> None:
    there = programs(MEANT)
    named = ["sieve 3", "sieve 7", "gate"]
    for gone, name in zip(there, named, strict=True):
        assert wrong(MEANT, [one for one in there if one is not gone]) == [name]


def test_a_program_that_asks_for_something_else_differs() -> None:
    other = MEANT.model_copy(
        update={"sieves": (SIEVES[0], SIEVES[1].model_copy(update={"share": 0.6}))}
    )
    assert wrong(other, programs(MEANT)) == ["sieve 7"]
    opened = MEANT.model_copy(update={"hold": None})
    assert wrong(opened, programs(MEANT)) == ["gate"]


def test_what_is_left_of_a_fault_is_found() -> None:
    assert wrong(SPEC.model_copy(update={"gate_ns": 10_000}), programs(MEANT)) == [
        "gate", "further programs",
    ]  # fmt: skip
    assert wrong(SPEC, programs(MEANT)) == ["departure program", "further programs"]
