"""Does anything happen after the deadline? Then the drain was not the end of the run."""

from __future__ import annotations

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found

GRACE_NS = {"virtual": 1_000_000, "real": 100_000_000}
"""Time to write down the failures at the deadline itself: 1 ms of clock reads in virtual
time, 100 ms of scheduling on a live kernel."""


class DeadlineKept:
    """No request, token, transfer or pool event lies after the deadline."""

    name = "deadline-kept"
    claim = "Nothing happened after the deadline."

    def examine(self, case: Case) -> Finding:
        """Compare the times of all traffic events with the end of the drain phase."""
        deadline = case.window.deadline_ns
        limit = deadline + GRACE_NS[case.plan.clock]
        last = 0
        broken: list[str] = []
        for step in case.history.steps:
            last = max(last, step.t)
            if step.t > limit:
                broken.append(f"{step.kind} of request {step.req} at {step.t / 1e9:.3f} s")
        for req, story in sorted(case.history.stories.items()):
            endings = [t for t, _ in story.done] + [t for t, _ in story.failed]
            latest = max([*story.sent_ns, *story.token_ns, *endings], default=0)
            last = max(last, latest)
            if latest > limit:
                broken.append(f"request {req} is still active at {latest / 1e9:.3f} s")
        evidence = f"last traffic at {last / 1e9:.3f} s, deadline at {deadline / 1e9:.3f} s"
        return found(self.name, self.claim, evidence, broken)
