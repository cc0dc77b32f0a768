"""Was every transfer that failed tried again within its budget, with pauses, in smaller parts?"""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.step import Step
from testbed.contract.event import Kind
from testbed.contract.guard import Guard

PEER_FAILED = "peer-failed"
TIMEOUT, STALLED = "timeout", "stalled"
MOST_STALLS = 3
"""So often a transfer goes on over another leg at once, outside of its budget."""
MOST_TURNS = 64
_SLACK_NS = 1_000_000
"""A pause may end so much early by two readings of a clock."""


@dataclass(slots=True)
class _Tries:
    """Attempts at one transfer: starts, and how each failed."""

    starts: list[Step] = field(default_factory=list)
    failures: list[Step] = field(default_factory=list)


class RetriesBounded:
    """Compares the attempts at each transfer with the guard of the plan."""

    name = "retries-bounded"
    claim = "Transfers are tried again within a budget, after a pause, and no peer fails for good."

    def examine(self, case: Case) -> Finding:
        """Gather the attempts of each transfer at its sender."""
        guards = {agent.node: agent.guard for agent in case.plan.agents}
        tries: dict[tuple[str, str, int], _Tries] = {}
        for step in case.history.of(Kind.TRANSFER_START, Kind.TRANSFER_FAILED):
            one = tries.setdefault((step.node, step.peer, step.req), _Tries())
            (one.starts if step.kind is Kind.TRANSFER_START else one.failures).append(step)
        broken: list[str] = []
        again = 0
        for (sender, receiver, req), one in sorted(tries.items()):
            again += len(one.starts) - 1
            guard = guards.get(sender)
            if guard is not None:
                name = f"request {req} from {sender} to {receiver}"
                broken.extend(f"{name}: {fault}" for fault in _faults(one, guard))
        broken.extend(
            f"request {step.req} was refused: {step.node} took {step.peer} to have failed for good"
            for step in case.history.of(Kind.POOL_REFUSED)
            if step.reason == PEER_FAILED
        )
        evidence = f"{len(tries)} transfer(s), tried again {again} time(s)"
        return found(self.name, self.claim, evidence, broken)


def _faults(tries: _Tries, guard: Guard) -> list[str]:
    """What is wrong with one transfer's attempts."""
    wrong: list[str] = []
    stalls = 0
    for number, (failure, following) in enumerate(
        zip(tries.failures, tries.starts[1:], strict=False)
    ):
        if failure.reason.startswith(STALLED) and stalls < MOST_STALLS:
            stalls += 1
            continue
        pause_ns = guard.backoff_ns << min(number - stalls, 32)
        if following.t - failure.t < pause_ns - _SLACK_NS:
            wrong.append(
                f"tried again after {(following.t - failure.t) / 1e6:.3f} ms, "
                f"the pause is {pause_ns / 1e6:g} ms"
            )
        before = tries.starts[number]
        least = min(2 * before.turns, before.blocks, MOST_TURNS)
        if failure.reason.startswith(TIMEOUT) and following.turns < least:
            wrong.append(f"what took too long in {before.turns} part(s) was sent again as it was")
    if len(tries.starts) - stalls > guard.retries + 1:
        wrong.append(f"{len(tries.starts) - stalls} attempts, the budget is {guard.retries + 1}")
    return wrong
