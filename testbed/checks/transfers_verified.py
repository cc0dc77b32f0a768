"""Is a transfer acknowledged only after the receiver has applied and verified it?

Transfers of one request may repeat after a failure, so events are walked in order of
time: an acknowledgement needs one more verification than acknowledgements before it. What a
sender that died had under way needs no end.
With relay decode a request has a transfer to each of two receivers, and MD may get a
second one, from RLD. Sender and receiver
are different nodes; in one guest their events share one clock.
"""

from __future__ import annotations

from collections import Counter

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.contract.attempt import request_of
from testbed.contract.event import Kind
from testbed.contract.role import Role

Way = tuple[int, str]
"""A request and the receiver of one of its transfers."""


class TransfersVerified:
    """Start, then verification at the receiver, then acknowledgement at the sender."""

    name = "transfers-verified"
    claim = "Every transfer is acknowledged, after the receiver verified it, or fails."

    def examine(self, case: Case) -> Finding:
        """Walk starts, verifications, acknowledgements and failures in time order."""
        broken: list[str] = []
        open_: Counter[Way] = Counter()
        senders: dict[Way, str] = {}
        verified: Counter[Way] = Counter()
        refused: set[int] = set()
        acked: set[Way] = set()
        ended: set[tuple[int, str, str]] = set()
        failed = 0
        for step in case.history.steps:
            way = (step.req, step.peer or step.node)
            if step.kind is Kind.TRANSFER_START:
                open_[way] += 1
                senders[way] = step.node
            elif step.kind is Kind.KV_VERIFIED:
                verified[way] += 1
                broken.extend(
                    f"request {step.req} was verified with {count} block(s) that {what}"
                    for count, what in (
                        (step.unequal, "are not what was sent"), (step.missing, "never came"),
                    )
                    if count
                )  # fmt: skip
            elif step.kind is Kind.KV_REFUSED:
                refused.add(request_of(step.req))
            elif step.kind is Kind.TRANSFER_ACKED:
                open_[way] -= 1
                verified[way] -= 1
                if verified[way] < 0:
                    broken.append(f"request {step.req} was acknowledged before it was verified")
                if (*way, step.node) in ended:
                    broken.append(f"request {step.req} was acknowledged twice")
                acked.add(way)
                ended.add((*way, step.node))
            elif step.kind is Kind.TRANSFER_FAILED:
                open_[way] -= 1
                failed += 1
        broken.extend(
            f"request {req} has {count} transfer(s) that neither ended nor failed"
            for (req, receiver), count in sorted(open_.items())
            if count > 0 and senders[req, receiver] not in case.history.lost
        )
        broken.extend(
            f"request {req} ended more transfers than it started"
            for (req, _), count in sorted(open_.items())
            if count < 0
        )
        answered = {req for req, story in case.history.stories.items() if story.done}
        moved = {request_of(req) for req, _ in acked}
        mains = {agent.node for agent in case.plan.agents if agent.role is Role.DECODE}
        cached = {
            request_of(req)
            for (node, req), (blocks, of) in case.history.matched.items()
            if node in mains and blocks == of
        }
        broken.extend(
            f"request {req} was answered although its only transfer was refused"
            for req in sorted((refused & answered) - moved - cached)
        )
        broken.extend(
            f"request {req} was answered without an acknowledged transfer"
            for req in sorted(answered - moved - refused - cached)
        )
        evidence = f"{len(ended):,} acknowledged after verification, {failed} failed"
        return found(self.name, self.claim, evidence, broken)
