"""Did every fault of the plan come and go when it should?

That each did what it should is verified on the spot, field by field; else there is no run to judge.
What an agent does to itself it does behind the pause in which that falls, and no more once it is
killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.checks.history import History
from testbed.checks.planned_ends import able_at, due_spans, killed_at
from testbed.checks.step import NONE
from testbed.contract.fault import AgentFault, LinkFault, PlannedFault, Span
from testbed.contract.plan import Plan

EXACT_NS, LIVE_NS = 1_000_000, 100_000_000
"""How late a fault may come or go in emulated time, under the virtual and the real clock; a live
one goes through the kernel and the Engine while the machine does other things."""


class FaultsKept:
    """Compares the plan's faults with the record, for each link and node on its own."""

    name = "faults-kept"
    claim = "Every fault began and ended when the plan says."

    def examine(self, case: Case) -> Finding:
        """Look for each begin and end, and measure how late it came."""
        plan = case.plan
        moments: dict[tuple[str, str, bool], list[int]] = {}
        for one in case.history.deeds:
            moments.setdefault((one.fault, one.subject, one.began), []).append(one.t)
        last_ns = max((sample.t for sample in case.history.samples), default=0)
        reached = case.history.reached_ns
        killed = killed_at(plan, reached)
        limit_ns = EXACT_NS if plan.clock == "virtual" else LIVE_NS
        broken: list[str] = []
        late: list[int] = []
        spans = came = 0
        for fault, subject in _each(plan):
            begun, own = 0, isinstance(fault, AgentFault)
            for number, span in enumerate(due_spans(fault, reached)):
                spans += 1
                if span.begin_ns > last_ns:
                    continue
                begun += 1
                for what, due_ns, seen in _expected(span, fault, subject, moments, last_ns):
                    able_ns = able_at(plan, reached, subject, due_ns) if own else due_ns
                    if able_ns is None or able_ns > last_ns:
                        continue
                    if number >= len(seen) and own and subject in killed:
                        continue  # it may have lost what it had not yet written
                    if number >= len(seen):
                        broken.append(
                            f"{fault.name} on {subject} never {what} ({due_ns / 1e9:g} s)"
                        )
                        continue
                    late.append(seen[number] - max(due_ns, min(able_ns, seen[number])))
                    if not 0 <= late[-1] <= limit_ns:
                        broken.append(
                            f"{fault.name} on {subject} {what} {late[-1] / 1e6:.3f} ms after "
                            f"{due_ns / 1e9:g} s, bound {limit_ns / 1e6:g} ms"
                        )
            came += begun
            if fault.spans and not begun:
                over = f"the run was over after {last_ns / 1e9:.3f} s"
                broken.append(
                    f"{fault.name} on {subject} never came: {_unseen(fault, reached) or over}"
                )
        evidence = (
            f"{came} of {spans} times that a fault was due within the run, at most "
            f"{max(late, default=0) / 1e6:.3f} ms late"
            if spans
            else "the plan has no faults"
        )
        evidence += _hits(case.history)
        return found(self.name, self.claim, evidence, broken, Status.INVALID)


def _hits(history: History) -> str:
    """How often each fault hit something that counts: one that hit nothing may be aimed badly."""
    total = dict(history.hits)
    for one in history.deeds:
        if one.hits != NONE:
            total[one.fault] = total.get(one.fault, 0) + one.hits
    listed = ", ".join(f"{name} {total[name]}" for name in sorted(total))
    return f"; hits: {listed}" if listed else ""


def _each(plan: Plan) -> Iterator[tuple[PlannedFault, str]]:
    for fault in plan.faults:
        for subject in fault.links if isinstance(fault, LinkFault) else fault.nodes:
            yield fault, subject


def _unseen(fault: PlannedFault, reached_ns: Mapping[str, int]) -> str:
    """What it waited for and never came, in words."""
    seen = fault.trigger
    if seen is None or fault.name in reached_ns:
        return ""
    what = f"transfer {seen.transfer} from {seen.sender} to {seen.receiver}"
    return f"{what} never had {seen.progress:.0%} of its bytes on the wire"


def _expected(
    span: Span, fault: PlannedFault, subject: str,
    moments: dict[tuple[str, str, bool], list[int]], last_ns: int,
) -> Iterator[tuple[str, int, list[int]]]:  # fmt: skip
    yield "began", span.begin_ns, moments.get((fault.name, subject, True), [])
    if span.end_ns is not None and span.end_ns <= last_ns:
        yield "ended", span.end_ns, moments.get((fault.name, subject, False), [])
