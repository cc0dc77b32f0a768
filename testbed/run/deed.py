"""What is done to a lab on purpose, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from testbed.contract.fault import AgentFault, PlannedFault, ResetFault
from testbed.lab.faults import Faults, LabFault


@dataclass(frozen=True, slots=True)
class Deed:
    """What is done to the lab at one time of the run, in emulated nanoseconds since the barrier."""

    at_ns: int
    do: Callable[[Faults], None]
    ends: bool = False
    """Whether it undoes something: at one moment such deeds come first."""


def planned_deeds(faults: Sequence[PlannedFault]) -> tuple[Deed, ...]:
    """Begin and end of every fault of a plan that the lab applies at a time; at one moment ends
    come before begins. Agents apply theirs themselves."""
    deeds = [
        deed
        for fault in faults
        if not isinstance(fault, AgentFault) and fault.trigger is None
        for deed in deeds_of(fault, 0)
    ]
    return tuple(sorted(deeds, key=lambda deed: not deed.ends))


def deeds_of(fault: LabFault, base_ns: int) -> tuple[Deed, ...]:
    """Begin and end of one fault whose times count from ``base_ns``; an instant has no end."""
    spans = fault.moved(base_ns)
    ends = [
        Deed(span.end_ns, partial(_end, fault), ends=True)
        for span in spans
        if span.end_ns is not None and not isinstance(fault, ResetFault)
    ]
    return (*ends, *(Deed(span.begin_ns, partial(_begin, fault)) for span in spans))


def _begin(fault: LabFault, faults: Faults) -> None:
    faults.begin(fault)


def _end(fault: LabFault, faults: Faults) -> None:
    faults.end(fault)
