"""Drawing rules of the kinds that act on links. Pure."""

from __future__ import annotations

from collections.abc import Callable

from testbed.contract.link import Distribution, LinkSpec
from testbed.scenario.document import Plain
from testbed.scenario.injection import (
    CorruptFault,
    DelayFault,
    DownFault,
    DuplicateFault,
    JitterFault,
    LossFault,
    RateFault,
)
from testbed.soak.dice import Dice
from testbed.soak.ground import (
    LONGEST_ADDED_NS,
    Ground,
    bursts,
    carries_frames,
    slowest_bps,
    widest_jitter_ns,
)
from testbed.soak.rule import Keys, Rule, alone, no_keys, nothing
from testbed.soak.schedule import Drawn, keys_of_fault

FEW, MANY = 1e-4, 0.3
"""Shares of frames that are lost, doubled or broken."""


def links(fits: Callable[[LinkSpec], bool]) -> Callable[[Ground], tuple[str, ...]]:
    """Links, and classes of links, that fit in both directions."""

    def found(ground: Ground) -> tuple[str, ...]:
        names = (*(link.name for link in ground.links), *ground.classes)
        return tuple(
            name for name in dict.fromkeys(names) if all(fits(way) for way in ground.ways(name))
        )

    return found


def _ways(ground: Ground, names: tuple[str, ...]) -> tuple[LinkSpec, ...]:
    return tuple(way for name in names for way in ground.ways(name))


def _rate(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    ways = _ways(ground, names)
    lowest = max(slowest_bps(way) for way in ways)
    highest = max([way.rate_bps for way in ways if way.rate_bps], default=lowest)
    return {"to": str(dice.rate(max(lowest, 100_000) + 8, max(highest, 2 * lowest, 1_000_000)))}


def _delay(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"add": str(dice.duration(1_000, LONGEST_ADDED_NS))}


def _jitters(spec: LinkSpec) -> bool:
    return widest_jitter_ns(spec, Distribution.NORMAL) > 0


def _jitter(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    ways = _ways(ground, names)
    shape = dice.pick(tuple(Distribution))
    widest = min(widest_jitter_ns(way, shape) for way in ways)
    spread = dice.duration(max(1, widest // 100), widest)
    may_reorder = all(carries_frames(way) for way in ways)
    drawn: Plain = {
        "spread": str(spread), "distribution": shape.value,
        "reorder": may_reorder and dice.chance(0.5),
    }  # fmt: skip
    return {"jitter": drawn}


def _loss(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    models = ["random"]
    ways = _ways(ground, names)
    if not any(bursts(way) for way in ways):
        models.append("gilbert-elliott")
        if all(way.loss is None for way in ways):
            models.append("four-state")
    loss: dict[str, Plain] = {"kind": dice.pick(models)}
    few = dice.share(FEW, MANY)
    match loss["kind"]:
        case "random":
            loss["share"] = str(few)
        case "gilbert-elliott":
            loss |= {
                "p": str(few), "r": str(dice.share(0.05, 0.9)),
                "bad_loss": str(dice.share(0.1, 1.0)), "good_loss": "0 %",
            }  # fmt: skip
        case _:
            loss |= {
                "p13": str(few), "p31": str(dice.share(0.05, 0.9)), "p32": "0 %",
                "p23": "100 %", "p14": "0 %",
            }  # fmt: skip
    return {"loss": loss}


def _loss_parts(fault: Drawn) -> tuple[tuple[str, bool], ...]:
    """Random losses may meet, and one of them a burst; a four-state model no other loss."""
    loss = keys_of_fault(fault)["loss"]
    model = loss["kind"] if isinstance(loss, dict) else None
    if model == "random":
        return (("loss", False),)
    return (("burst", True),) if model == "gilbert-elliott" else (("burst", True), ("loss", True))


def some_frames(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    """A share of the frames."""
    return {"share": str(dice.share(FEW, MANY))}


LINK_RULES: tuple[Rule, ...] = (
    Rule(DownFault, links(lambda way: True), no_keys, nothing),
    Rule(RateFault, links(lambda way: True), _rate, nothing, more_is_milder=frozenset({"to"})),
    Rule(DelayFault, links(lambda way: True), _delay, nothing),
    Rule(JitterFault, links(_jitters), _jitter, alone("jitter")),
    Rule(LossFault, links(carries_frames), _loss, _loss_parts),
    Rule(DuplicateFault, links(carries_frames), some_frames, nothing),
    Rule(CorruptFault, links(carries_frames), some_frames, nothing),
)
