"""How the requests of a run ended, all phases together: counted, not judged.

A request that was reported failed breaks no claim of the checks, so whoever reads that all
of them pass must be told beside it how many were not answered.
"""

from __future__ import annotations

from collections import Counter

from testbed.checks.case import Case
from testbed.contract.record import Record

SHOWN_MAX = 5
"""Reasons that are written out; the rest are only counted."""


class Endings(Record):
    """Requests that were asked, and those of them that were reported failed.

    Attributes:
        asked: lines of the workload; in a closed loop those that a user came to.
        failed: requests with a reported failure, each counted once.
        reasons: these by the first reason that was reported.
    """

    asked: int
    failed: int
    reasons: dict[str, int]

    def in_words(self) -> str:
        """``14 of 16 requests failed: deadline 14``; empty where none failed."""
        if not self.failed:
            return ""
        most = sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        listed = [f"{reason or 'no reason'} {count}" for reason, count in most[:SHOWN_MAX]]
        if len(most) > SHOWN_MAX:
            listed.append(f"other reasons {sum(count for _, count in most[SHOWN_MAX:])}")
        return f"{self.failed:,} of {self.asked:,} requests failed: {', '.join(listed)}"


def endings(case: Case) -> Endings:
    """Count the client's endings."""
    stories = case.history.stories
    sent = {req for req, story in stories.items() if story.sent_ns}
    reasons = Counter(story.failed[0][1] for story in stories.values() if story.failed)
    return Endings(
        asked=len(sent if case.closed_loop else sent | set(case.requests)),
        failed=reasons.total(),
        reasons=dict(sorted(reasons.items())),
    )
