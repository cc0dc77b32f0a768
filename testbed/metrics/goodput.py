"""Answers that keep the service level, per second of the window.

The level is the paper's: first token within 10 s, 50 ms per output token (there for
90 % of the requests; here each request is held to it).
"""

from __future__ import annotations

from testbed.metrics.run import Run
from testbed.metrics.token import Answers

FIRST_TOKEN_S = 10.0
OUTPUT_TOKEN_S = 0.05


def goodput(run: Run, answers: Answers) -> float | None:
    """Requests of the window that were answered in time, per second of the window.

    An answer of one token has no time per token and keeps that part of the level. None
    for runs without a serving plane, which no service level is asked of.
    """
    if not run.serves:
        return None
    kept = answers.answered & (answers.ttft_s <= FIRST_TOKEN_S)
    kept &= (answers.counts < 2) | (answers.tpot_s <= OUTPUT_TOKEN_S)
    return int(kept.sum()) / run.measure_s
