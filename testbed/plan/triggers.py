"""Faults that wait for something: whether it can be seen, who sees it, and what they may meet."""

from __future__ import annotations

from testbed.contract.fault import Fault, PlannedFault, Span
from testbed.contract.network import Network
from testbed.contract.trigger import Trigger, Watch
from testbed.plan.ailments import known_pair
from testbed.scenario.timed import When
from testbed.scenario.value import Scenario


def trigger_of(when: When, scenario: Scenario, network: Network, place: str) -> Trigger:
    """What the sender of the pair looks out for.

    Raises:
        PlanError: the two are no pair.
    """
    sender, receiver = known_pair(when.pair, scenario, network, place)
    return Trigger(
        sender=sender, receiver=receiver, transfer=when.transfer, progress=when.progress.fraction
    )


def watches(faults: tuple[PlannedFault, ...], node: str) -> tuple[Watch, ...]:
    """What one agent sees first of all, for whichever fault waits for it."""
    return tuple(
        Watch(fault=one.name, trigger=one.trigger)
        for one in faults
        if one.trigger is not None and one.trigger.sender == node
    )


def meet(one: Fault, span: Span, other: Fault, theirs: Span) -> bool:
    """Whether both may be in force at one moment: what waits for different things may come any
    time."""
    return one.trigger != other.trigger or span.overlaps(theirs)


def begins(fault: Fault, span: Span) -> str:
    """When, in words."""
    at = f"{span.begin_ns / 1e9:g} s"
    return f"begins at {at}" if fault.trigger is None else f"begins, {at} behind what it waits for"
