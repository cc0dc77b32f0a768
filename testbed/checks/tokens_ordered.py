"""Does the client see each token once and in order? A handoff must not repeat or skip."""

from __future__ import annotations

from itertools import pairwise

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.history import Story


class TokensOrdered:
    """Positions run 0, 1, 2 …, and the final answer lists exactly the streamed tokens."""

    name = "tokens-ordered"
    claim = "Every token arrives once and in order, and the answer equals the stream."

    def examine(self, case: Case) -> Finding:
        """Compare stream and answer of every request."""
        broken: list[str] = []
        total = 0
        for req, story in sorted(case.history.stories.items()):
            total += len(story.tokens)
            fault = _fault(
                story, case.requests[req].output_tokens if req in case.requests else None
            )
            if fault:
                broken.append(f"request {req} {fault}")
        return found(self.name, self.claim, f"{total:,} tokens streamed", broken)


def _fault(story: Story, wanted: int | None) -> str | None:
    for index, position in enumerate(story.positions):
        if position != index:
            return f"has position {position} where {index} was due"
    if any(later < earlier for earlier, later in pairwise(story.token_ns)):
        return "has a token that arrived before its predecessor"
    if not story.done:
        return None
    tokens = story.done[0][1]
    if tokens != tuple(story.tokens):
        return f"streamed {len(story.tokens)} tokens but its answer of {len(tokens)} differs"
    if wanted is not None and len(tokens) > wanted:
        return f"was answered with {len(tokens)} tokens, {wanted} were asked for"
    if not tokens:
        return "was answered with no token"
    return None
