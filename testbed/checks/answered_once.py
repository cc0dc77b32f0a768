"""Is every request accounted for? Silence is the one answer that is never allowed."""

from __future__ import annotations

from collections import Counter

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.history import Story


class AnsweredOnce:
    """Every request of the workload is sent once, and then answered or reported failed."""

    name = "answered-once"
    claim = "Every request is answered exactly once, or reported failed with a reason."

    def examine(self, case: Case) -> Finding:
        """Walk the workload and the client's events."""
        broken: list[str] = []
        reasons: Counter[str] = Counter()
        done = 0
        for req in sorted(set(case.history.stories) | set(case.requests)):
            story = case.history.stories.get(req)
            if req not in case.requests:
                broken.append(f"request {req} is not in the workload")
            elif story is None or not story.sent_ns:
                if not case.closed_loop:
                    broken.append(f"request {req} was never sent")
            else:
                broken.extend(f"request {req} {fault}" for fault in _faults(story))
                done += bool(story.done)
                reasons.update(reason for _, reason in story.failed)
        if case.history.stories and not done:
            broken.append("no request at all was answered")
        failed = sum(reasons.values())
        evidence = f"{done:,} answered, {failed:,} reported failed"
        if reasons:
            evidence += f" ({', '.join(f'{n} x {why}' for why, n in reasons.most_common(5))})"
        return found(self.name, self.claim, evidence, broken)


def _faults(story: Story) -> list[str]:
    faults: list[str] = []
    if len(story.sent_ns) > 1:
        faults.append(f"was sent {len(story.sent_ns)} times")
    endings = len(story.done) + len(story.failed)
    if endings == 0:
        faults.append("was neither answered nor reported failed")
    elif endings > 1:
        faults.append(f"ended {len(story.done)} x answered, {len(story.failed)} x failed")
    if any(not reason for _, reason in story.failed):
        faults.append("failed without a reason")
    return faults
