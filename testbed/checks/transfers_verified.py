"""Is a transfer acknowledged only after the receiver has applied and verified it?

Transfers of one request may repeat after a failure, so events are walked in order of
time: an acknowledgement needs one more verification than acknowledgements before it.
Sender and receiver are different nodes; in one guest their events share one clock.
"""

from __future__ import annotations

from collections import Counter

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.contract.event import Kind


class TransfersVerified:
    """Start, then verification at the receiver, then acknowledgement at the sender."""

    name = "transfers-verified"
    claim = "Every transfer is acknowledged, after the receiver verified it, or fails."

    def examine(self, case: Case) -> Finding:
        """Walk starts, verifications, acknowledgements and failures in time order."""
        broken: list[str] = []
        open_: Counter[int] = Counter()
        verified: Counter[int] = Counter()
        refused: set[int] = set()
        acked: set[int] = set()
        failed = 0
        for step in case.history.steps:
            req = step.req
            if step.kind is Kind.TRANSFER_START:
                open_[req] += 1
            elif step.kind is Kind.KV_VERIFIED:
                verified[req] += 1
            elif step.kind is Kind.KV_REFUSED:
                refused.add(req)
            elif step.kind is Kind.TRANSFER_ACKED:
                open_[req] -= 1
                verified[req] -= 1
                if verified[req] < 0:
                    broken.append(f"request {req} was acknowledged before it was verified")
                if req in acked:
                    broken.append(f"request {req} was acknowledged twice")
                acked.add(req)
            elif step.kind is Kind.TRANSFER_FAILED:
                open_[req] -= 1
                failed += 1
        broken.extend(
            f"request {req} has {count} transfer(s) that neither ended nor failed"
            for req, count in sorted(open_.items())
            if count > 0
        )
        broken.extend(
            f"request {req} ended more transfers than it started"
            for req, count in sorted(open_.items())
            if count < 0
        )
        answered = {req for req, story in case.history.stories.items() if story.done}
        broken.extend(
            f"request {req} was answered although its only transfer was refused"
            for req in sorted((refused & answered) - acked)
        )
        broken.extend(
            f"request {req} was answered without an acknowledged transfer"
            for req in sorted(answered - acked - refused)
        )
        evidence = f"{len(acked):,} acknowledged after verification, {failed} failed"
        return found(self.name, self.claim, evidence, broken)
