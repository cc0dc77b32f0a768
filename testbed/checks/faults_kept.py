"""Did every fault of the plan come and go when it should?

That each did what it should is verified on the spot, field by field; else there is no run to judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.checks.history import NONE, History
from testbed.contract.fault import LinkFault, PlannedFault, Span
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
        limit_ns = EXACT_NS if plan.clock == "virtual" else LIVE_NS
        broken: list[str] = []
        late: list[int] = []
        spans = came = 0
        for fault, subject in _each(plan):
            begun = 0
            due_spans, why = _due(fault, case.history.reached_ns)
            for number, span in enumerate(due_spans):
                spans += 1
                if span.begin_ns > last_ns:
                    continue
                begun += 1
                for what, due_ns, seen in _expected(span, fault, subject, moments, last_ns):
                    if number >= len(seen):
                        broken.append(
                            f"{fault.name} on {subject} never {what} ({due_ns / 1e9:g} s)"
                        )
                        continue
                    late.append(seen[number] - due_ns)
                    if not 0 <= late[-1] <= limit_ns:
                        broken.append(
                            f"{fault.name} on {subject} {what} {late[-1] / 1e6:.3f} ms after "
                            f"{due_ns / 1e9:g} s, bound {limit_ns / 1e6:g} ms"
                        )
            came += begun
            if fault.spans and not begun:
                over = f"the run was over after {last_ns / 1e9:.3f} s"
                broken.append(f"{fault.name} on {subject} never came: {why or over}")
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


def _due(fault: PlannedFault, reached_ns: Mapping[str, int]) -> tuple[tuple[Span, ...], str]:
    """When it was due; not at all, with the reason, where what it waited for never came."""
    if fault.trigger is None:
        return fault.spans, ""
    if fault.name not in reached_ns:
        seen = fault.trigger
        what = f"transfer {seen.transfer} from {seen.sender} to {seen.receiver}"
        return (), f"{what} never had {seen.progress:.0%} of its bytes on the wire"
    return fault.moved(reached_ns[fault.name]), ""


def _expected(
    span: Span, fault: PlannedFault, subject: str,
    moments: dict[tuple[str, str, bool], list[int]], last_ns: int,
) -> Iterator[tuple[str, int, list[int]]]:  # fmt: skip
    yield "began", span.begin_ns, moments.get((fault.name, subject, True), [])
    if span.end_ns is not None and span.end_ns <= last_ns:
        yield "ended", span.end_ns, moments.get((fault.name, subject, False), [])
