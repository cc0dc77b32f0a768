"""A link under faults: what it is while any number of them act together. Pure.

The order in which faults came does not matter, and taking one away leaves the others::

    rate       the lowest of all
    delay      the sum
    jitter     variances add up; all of one shape keep it, a mixture is taken as normal
    loss       independent losses multiply what survives; one bursty model may be among them
    duplicate, corrupt     independent chances
    reorder    independent chances
    down       everything is lost
    sieves     one behind the other, by the number of their fault
    hold       one at a time
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from testbed.contract.fault import (
    AddedDelay,
    AddedJitter,
    AddedLoss,
    Corruption,
    Down,
    Duplication,
    Effect,
    Reordering,
    SlowRate,
)
from testbed.contract.link import (
    Distribution,
    FourState,
    GilbertElliott,
    Jitter,
    LinkSpec,
    Loss,
    RandomLoss,
)
from testbed.contract.sieve import Hold, Sieve
from testbed.errors import PlanError
from testbed.shaping.refusal import EVERYTHING


def faulted(spec: LinkSpec, effects: Iterable[Effect], subject: str) -> LinkSpec:
    """One direction of a link while ``effects`` act on it.

    Args:
        subject: names the link in an error.

    Raises:
        PlanError: two of them cannot act at once: both bursts of loss, one with a four-state
            model, or two holds.
    """
    acting = tuple(effects)
    rates = [spec.rate_bps, *(one.rate_bps for one in acting if isinstance(one, SlowRate))]
    limited = [rate for rate in rates if rate]
    losses = [spec.loss, *(one.loss for one in acting if isinstance(one, AddedLoss))]
    jitters = [spec.jitter, *(one.jitter for one in acting if isinstance(one, AddedJitter))]
    loss = _together([one for one in losses if one is not None], subject)
    return spec.model_copy(
        update={
            "rate_bps": min(limited) if limited else 0,
            "delay_ns": spec.delay_ns
            + sum(one.delay_ns for one in acting if isinstance(one, AddedDelay)),
            "jitter": _mixed([one for one in jitters if one is not None]),
            "loss": EVERYTHING if any(isinstance(one, Down) for one in acting) else loss,
            "duplicate": _any(
                [spec.duplicate, *(one.share for one in acting if isinstance(one, Duplication))]
            ),
            "corrupt": _any(
                [spec.corrupt, *(one.share for one in acting if isinstance(one, Corruption))]
            ),
            "reorder": _any(
                [spec.reorder, *(one.share for one in acting if isinstance(one, Reordering))]
            ),
            "sieves": tuple(
                sorted((one for one in acting if isinstance(one, Sieve)), key=_by_number)
            ),
            "hold": _single([one for one in acting if isinstance(one, Hold)], subject),
        }
    )


def _any(chances: list[float]) -> float:
    """Chance that at least one of independent chances comes true; the order does not matter."""
    given = sorted(chance for chance in chances if chance)
    if len(given) < 2:
        return given[0] if given else 0.0
    return 1 - math.prod(1 - chance for chance in given)


def _by_number(sieve: Sieve) -> int:
    return sieve.number


def _single(holds: list[Hold], subject: str) -> Hold | None:
    if len(holds) > 1:
        raise PlanError(
            "put faults on a link", subject, "two holds would act at once",
            "let one end before the other begins",
        )  # fmt: skip
    return holds[0] if holds else None


def _mixed(jitters: list[Jitter]) -> Jitter | None:
    if len(jitters) < 2:
        return jitters[0] if jitters else None
    shapes = {one.distribution for one in jitters}
    return Jitter(
        spread_ns=math.isqrt(sum(one.spread_ns**2 for one in jitters)),
        distribution=shapes.pop() if len(shapes) == 1 else Distribution.NORMAL,
        reorder=any(one.reorder for one in jitters),
    )


def _together(losses: list[Loss], subject: str) -> Loss | None:
    alone = _any([one.share for one in losses if isinstance(one, RandomLoss)])
    bursts = [one for one in losses if not isinstance(one, RandomLoss)]
    if len(bursts) > 1:
        raise PlanError(
            "put faults on a link", subject, "two models of bursty loss would act at once",
            "let one end before the other begins, or make one of them random",
        )  # fmt: skip
    match bursts:
        case []:
            return RandomLoss(share=alone) if alone else None
        case [GilbertElliott() as burst]:
            return burst.model_copy(
                update={
                    "bad_loss": _any([burst.bad_loss, alone]),
                    "good_loss": _any([burst.good_loss, alone]),
                }
            )
        case [FourState() as burst] if not alone:
            return burst
    raise PlanError(
        "put faults on a link", subject,
        "a four-state model and another loss would act at once, which netem cannot do",
        "use a Gilbert-Elliott model, which can",
    )  # fmt: skip
