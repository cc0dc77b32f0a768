"""Are the tokens those of one uninterrupted engine? The check that makes the rest matter.

``nano`` computes in fp64, where no rounding difference ever turned a token, so any
difference fails. In fp32 a batch or a different split of the prompt may turn a token
whose two best logits nearly tie: such a first difference is accepted when the
reference's gap is below the bound, and counted. What follows it continues another
text and is not compared. Where every request was reported failed there is no answer that
could differ: that is the matter of ``answered-once``, and the lab was none the worse for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed.checks.case import Case, Reference
from testbed.checks.finding import Finding, Status, found
from testbed.errors import AnalysisError

GAP_BOUND = {"nano": 0.0, "smollm2-135m": 1e-3}
"""A mismatch is rounding only where the reference's top-1 to top-2 gap (logits) lies below
this, per model; the same figures as in the model room, which measured them."""


class TokensEqual:
    """Answers equal ``reference.jsonl``, but for counted near ties in fp32."""

    name = "tokens-equal-reference"
    claim = "Every answer equals that of one uninterrupted engine."

    def examine(self, case: Case) -> Finding:
        """Compare every answered request.

        A missing reference makes the run invalid, and so does one in which nobody asked.
        """
        if case.reference is None:
            raise AnalysisError(
                "compare tokens",
                "reference.jsonl",
                "there is no reference to compare with",
                "write it with: python -m testbed_agents.reference RUN",
            )
        bounds = [GAP_BOUND[agent.model.name] for agent in case.plan.agents]
        bound = max(bounds)
        broken: list[str] = []
        compared = ties = 0
        for req, story in sorted(case.history.stories.items()):
            if not story.done:
                continue
            reference = case.reference.get(req)
            if reference is None:
                broken.append(f"request {req} has no reference")
                continue
            tokens = story.done[0][1]
            at = _first_difference(tokens, reference)
            compared += len(tokens) if at is None else at + 1
            if at is None:
                if len(tokens) < len(reference.tokens):
                    broken.append(
                        f"request {req} ends after {len(tokens)} of {len(reference.tokens)} tokens"
                    )
            elif at < len(reference.gaps) and reference.gaps[at] < bound:
                ties += 1
            else:
                broken.append(f"request {req} differs at position {at}{_gap(reference, at)}")
        evidence = f"{compared:,} tokens compared"
        if bound:
            evidence += f", {ties} near ties accepted (gap below {bound:g} in fp32)"
        asked = [story for story in case.history.stories.values() if story.sent_ns]
        if not compared and asked and not any(story.done for story in asked):
            evidence = f"nothing to compare: none of {len(asked):,} requests was answered"
        elif not compared:
            return found(self.name, self.claim, evidence, ["nothing to compare"], Status.INVALID)
        return found(self.name, self.claim, evidence, broken)


def _first_difference(tokens: Sequence[int], reference: Reference) -> int | None:
    for at, token in enumerate(tokens):
        if at >= len(reference.tokens) or token != reference.tokens[at]:
            return at
    return None


def _gap(reference: Reference, at: int) -> str:
    if at >= len(reference.gaps):
        return ", beyond the reference's end"
    return f" (the reference's gap there is {reference.gaps[at]:.3g})"
