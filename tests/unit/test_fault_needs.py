"""A host whose kernel cannot do a fault says so before anything is made."""

from __future__ import annotations

import pytest

from testbed.contract.fault import Down, Effect, LinkFault, PlannedFault, ResetFault, Span
from testbed.contract.sieve import Hold, Sieve
from testbed.errors import HostError
from testbed.lab.host.faultneeds import Need, lacks, needs_of, refuse_faults

pytestmark = pytest.mark.unit
NOW = (Span(begin_ns=0),)
RESET = ResetFault(name="cut-off", place="some.yaml:7", spans=NOW, nodes=("p1",))


def on_link(effect: Effect) -> LinkFault:
    return LinkFault(
        name="picked", place="some.yaml:6", spans=NOW, links=("wan1",), forward=True,
        backward=True, effect=effect,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "needs"),
    [
        (on_link(Down()), ()),
        (on_link(Sieve(kind="blackhole")), (Need.PROGRAMS,)),
        (on_link(Hold(stop_ns=10_000, each_ns=20_000)), (Need.PROGRAMS, Need.ROOM)),
        (RESET, (Need.DESTROY,)),
    ],
)
def test_each_fault_needs_its_part_of_the_kernel(
    fault: PlannedFault, needs: tuple[Need, ...]
) -> None:
    assert needs_of(fault) == needs
    refuse_faults([fault], lambda _: True)
    for missing in needs:
        with pytest.raises(HostError) as caught:
            refuse_faults([on_link(Down()), fault], lambda need, gone=missing: need is not gone)  # type: ignore[misc]
        assert missing.part in caught.value.cause
        assert fault.place in caught.value.subject
        assert "CONFIG_" in caught.value.remedy


def test_this_kernel_can_be_asked() -> None:
    assert set(lacks()) <= {need.part for need in Need}
