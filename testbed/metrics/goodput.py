"""Answers that keep the service level, per second of the window, and per cost of the hardware.

The level is the scenario's; by default the paper's, a first token within 10 s and 50 ms
per output token. The paper asks it of 90 % of the requests: ``service_level`` says whether
a run does. Goodput holds each request to it, so that it stays defined where a run does not.
"""

from __future__ import annotations

from testbed.contract.service import Cost
from testbed.metrics.percentile import NS
from testbed.metrics.record import ServiceLevel
from testbed.metrics.run import Run
from testbed.metrics.token import Answers


def goodput(run: Run, answers: Answers) -> float | None:
    """Requests of the window that were answered in time, per second of the window.

    An answer of one token has no time per token and keeps that part of the level. None
    for runs without a serving plane, which no service level is asked of.
    """
    if not run.serves:
        return None
    level = run.plan.level
    kept = answers.answered & (answers.ttft_s <= level.ttft_ns / NS)
    kept &= (answers.counts < 2) | (answers.tpot_s <= level.tpot_ns / NS)
    return int(kept.sum()) / run.measure_s


def service_level(run: Run, answers: Answers, offered: int) -> ServiceLevel | None:
    """The level, and whether 90 % of the window's ``offered`` requests keep each part of it.

    A request that was not answered keeps neither. None as for ``goodput``.
    """
    if not run.serves:
        return None
    level = run.plan.level
    ttft_s, tpot_s = level.ttft_ns / NS, level.tpot_ns / NS
    answered = answers.answered
    first = int((answered & (answers.ttft_s <= ttft_s)).sum())
    each = int((answered & ((answers.counts < 2) | (answers.tpot_s <= tpot_s))).sum())
    return ServiceLevel(
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        ttft_share=first / offered if offered else None,
        tpot_share=each / offered if offered else None,
        kept=min(first, each) >= 0.9 * offered if offered else None,
    )


def benefit_cost(cost: Cost | None, goodput_rps: float | None) -> float | None:
    """Goodput per unit of hardware cost: requests/s over units/h of the price table.

    None without prices, without goodput, or where all priced roles are empty.
    """
    if cost is None or goodput_rps is None or cost.total <= 0:
        return None
    return goodput_rps / cost.total
