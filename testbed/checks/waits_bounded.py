"""Did every transfer, and every hold of pages for one, end by its deadline?"""

from __future__ import annotations

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.planned_ends import due_spans
from testbed.contract.event import Kind
from testbed.contract.fault import NodeFault

EXACT_NS, LIVE_NS = 10_000_000, 1_000_000_000
"""How much later than its deadline something may end, in emulated time, under the virtual and the
real clock: the answer has a way to go, and a live loop is late."""


class WaitsBounded:
    """Measures transfers at their senders and pages at their receivers against the deadline."""

    name = "waits-bounded"
    claim = "Every transfer, and every hold of pages for one, ended by its deadline."

    def examine(self, case: Case) -> Finding:
        """Pair begins with ends; what never ended is measured to the end of the record."""
        slack_ns = EXACT_NS if case.plan.clock == "virtual" else LIVE_NS
        limit = {agent.node: agent.pool.transfer_timeout_ns for agent in case.plan.agents}
        last_ns = max((moment.t for moment in case.history.moments), default=0)
        broken: list[str] = []
        longest_ns = 0
        for what, node, begun_ns, ended_ns, times in (*_transfers(case), *_holds(case)):
            if node not in limit or (ended_ns is None and _gone(case, node)):
                continue
            took_ns = (last_ns if ended_ns is None else ended_ns) - begun_ns
            longest_ns = max(longest_ns, took_ns)
            bound_ns = limit[node] * times + slack_ns + _stood_still(case, node)
            if took_ns > bound_ns:
                end = "had not ended" if ended_ns is None else "took"
                broken.append(
                    f"{what} {end} {'after ' if ended_ns is None else ''}{took_ns / 1e9:.3f} s, "
                    f"its deadline was {limit[node] * times / 1e9:g} s"
                )
        evidence = f"the longest took {longest_ns / 1e9:.3f} s"
        return found(self.name, self.claim, evidence, broken)


Wait = tuple[str, str, int, int | None, int]
"""What, whose, begin, end (None: never), and how many times the deadline of a transfer it has."""


def _transfers(case: Case) -> tuple[Wait, ...]:
    open_: dict[tuple[str, str, int], tuple[int, int]] = {}
    found_: list[Wait] = []
    ends = (Kind.TRANSFER_ACKED, Kind.TRANSFER_FAILED)
    for step in case.history.of(Kind.TRANSFER_START, *ends):
        way = (step.node, step.peer, step.req)
        if step.kind is Kind.TRANSFER_START:
            open_[way] = step.t, step.turns
        elif way in open_:
            begun_ns, turns = open_.pop(way)
            found_.append((_named(way), step.node, begun_ns, step.t, turns))
    left = [(_named(way), way[0], begun, None, turns) for way, (begun, turns) in open_.items()]
    return (*found_, *left)


def _holds(case: Case) -> tuple[Wait, ...]:
    """Pages: for as long as a transfer arrives, and then until it is applied."""
    turns: dict[int, int] = {}
    for step in case.history.of(Kind.TRANSFER_START):
        turns[step.req] = max(step.turns, turns.get(step.req, 1))
    open_: dict[tuple[str, int, int], int] = {}
    found_: list[Wait] = []
    for one in case.history.pages:
        key = (one.node, one.req, one.epoch)
        times = 1 + turns.get(one.req, 1)
        if one.kind is Kind.PAGES_TAKEN:
            open_[key] = one.t
        elif one.kind is Kind.PAGES_FREED and key in open_:
            what = f"the hold of {one.pages} pages for request {one.req}"
            found_.append((what, one.node, open_.pop(key), one.t, times))
    left = [
        (f"the hold of pages for request {req}", node, begun, None, 1 + turns.get(req, 1))
        for (node, req, _), begun in open_.items()
    ]
    return (*found_, *left)


def _named(way: tuple[str, str, int]) -> str:
    return f"the transfer of request {way[2]} from {way[0]} to {way[1]}"


def _gone(case: Case, node: str) -> bool:
    return node in case.history.lost or any(fall.node == node for fall in case.history.falls)


def _stood_still(case: Case, node: str) -> int:
    """Time that a fault made the node's programs stand still: their timers stood, too."""
    return sum(
        (case.window.deadline_ns if span.end_ns is None else span.end_ns) - span.begin_ns
        for fault in case.plan.faults
        if isinstance(fault, NodeFault) and fault.act == "pause" and node in fault.nodes
        for span in due_spans(fault, case.history.reached_ns)
    )
