"""What faults of the plan do to agents that a check would else blame: they end, or stand still."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.contract.fault import NodeFault, PlannedFault, Span
from testbed.contract.plan import Plan


def due_spans(fault: PlannedFault, reached_ns: Mapping[str, int]) -> tuple[Span, ...]:
    """When a fault was due; never, where what it waited for did not come.

    Args:
        reached_ns: when that came, by the fault's name.
    """
    if fault.trigger is None:
        return fault.spans
    base_ns = reached_ns.get(fault.name)
    return () if base_ns is None else fault.moved(base_ns)


def killed_at(plan: Plan, reached_ns: Mapping[str, int]) -> dict[str, int]:
    """Node to the time (ns since the barrier) at which a fault of the plan ends it."""
    return {
        node: span.begin_ns
        for fault in plan.faults
        if isinstance(fault, NodeFault) and fault.act in ("kill", "restart")
        for span in due_spans(fault, reached_ns)
        for node in fault.nodes
    }


def able_at(plan: Plan, reached_ns: Mapping[str, int], node: str, at_ns: int) -> int | None:
    """When an agent can do what is due at ``at_ns``: behind the pause in which that falls.

    None where it never can: it is killed by then, or stands still to the end.
    """
    able = at_ns
    pauses = sorted(
        (span.begin_ns, span.end_ns)
        for fault in plan.faults
        if isinstance(fault, NodeFault) and fault.act == "pause" and node in fault.nodes
        for span in due_spans(fault, reached_ns)
        if span.end_ns is not None
    )
    for begin_ns, end_ns in pauses:
        if begin_ns <= able < end_ns:
            able = end_ns
    return None if _never(plan, reached_ns, node, able) else able


def _never(plan: Plan, reached_ns: Mapping[str, int], node: str, at_ns: int) -> bool:
    return any(
        span.begin_ns <= at_ns
        for fault in plan.faults
        if isinstance(fault, NodeFault) and fault.act in ("kill", "pause") and node in fault.nodes
        for span in due_spans(fault, reached_ns)
        if span.end_ns is None
    )
