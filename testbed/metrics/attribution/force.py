"""Which of the faults in force bear on a transfer, a message or a node, and for how long.

That a fault was in force is no proof. One that loses packets explains a transfer only if segments
were sent again, one that adds delay only as many round trips as there can be, one that slows
computing only what is computed.
"""

from __future__ import annotations

from collections.abc import Iterable

from testbed.contract.fault import AddedDelay, AddedJitter
from testbed.metrics.attribution.cause import Wait
from testbed.metrics.attribution.intervals import Interval
from testbed.metrics.attribution.past import Force, Sent
from testbed.metrics.attribution.ways import Way

LOSING = frozenset({"down", "disconnect", "loss", "corrupt"})
"""After these the sender's timer has backed off: it tries again only some time later."""
OUTAGE = frozenset({"down", "disconnect", "pause", "kill", "restart", "stall"})
"""Nothing passes: no further proof is needed."""
RETRY_NS = 400_000_000
"""Twice Linux's shortest retransmission time-out (TCP_RTO_MIN). The timer doubles, so that after
an outage the next try comes at most as long after its end as it lasted, and this."""
ROUNDS, MESSAGE_ROUNDS = 16, 2
"""Round trips of a transfer that added delay can lengthen, and of a message."""
_COMPUTED = frozenset({Wait.PREFILL_QUEUE, Wait.PREFILL, Wait.LOAD, Wait.HANDOFF, Wait.DECODE})
_WEIGHT = ("kill", "disconnect", "down", "pause", "stall", "restart", "rate", "loss", "slow")


def by_weight(forces: Iterable[Force]) -> list[Force]:
    """The one that does most first; of equals by begin and name."""

    def rank(force: Force) -> tuple[int, int, str, str]:
        weight = _WEIGHT.index(force.kind) if force.kind in _WEIGHT else len(_WEIGHT)
        return weight, force.begin, force.fault.name, force.subject

    return sorted(forces, key=rank)


def on_node(force: Force, wait: Wait) -> bool:
    """Whether a fault of a node bears on what is waited for there."""
    if force.fault.target == "link":
        return False
    if force.kind == "slow":
        return wait in _COMPUTED
    if force.kind == "stall":
        return wait is Wait.TRANSFER
    if force.kind == "descriptors":
        return wait is Wait.POOL
    return True


def on_transfer(force: Force, sent: Sent) -> Interval:
    """From when to when a fault of a link or node explains a transfer; empty where it cannot."""
    if sent.begin >= force.end:
        return 0, 0
    if force.kind not in OUTAGE and force.kind in LOSING | {"duplicate"} and not _resent(sent):
        return 0, 0
    if force.kind in LOSING and _resent(sent):
        return force.begin, max(force.end, sent.end)
    return force.begin, force.end


def on_message(force: Force, begin: int, lossy: bool) -> Interval:
    """The same for a message that was awaited from ``begin`` on; ``lossy``: packets were lost where
    it may have gone."""
    if begin >= force.end:
        return 0, 0
    if force.kind in LOSING:
        if force.kind not in OUTAGE and not lossy:
            return 0, 0
        return force.begin, force.end + (force.end - force.begin) + RETRY_NS
    return force.begin, force.end


def longest_ns(force: Force, slow: float, rounds: int) -> int | None:
    """Most that it can add in so many round trips; None without a bound."""
    effect = force.fault.effect if force.fault.target == "link" else None
    if isinstance(effect, AddedDelay):
        return round(rounds * effect.delay_ns / slow)
    if isinstance(effect, AddedJitter):
        return round(rounds * 4 * effect.jitter.spread_ns / slow)
    return None


def bearing(forces: Iterable[Force], ways: Iterable[Way]) -> list[Force]:
    """Faults of links that act on one of these directions, by weight."""
    wanted = tuple(ways)
    return by_weight(force for force in forces if any(force.acts(way) for way in wanted))


def _resent(sent: Sent) -> bool:
    """Segments were sent again, or nobody could ask the kernel: the connection was gone."""
    return sent.retrans > 0 or sent.cwnd < 0
