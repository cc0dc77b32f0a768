"""Drawing rules of the kinds that act on connections: of a pair, of a node, others. Pure."""

from __future__ import annotations

from testbed.scenario.ailments import (
    DropConnectionFault,
    PortsFault,
    ShrinkFault,
    SkipChunkFault,
    StaleFault,
)
from testbed.scenario.flowfault import ResetFault, TrafficFault
from testbed.soak.dice import Dice
from testbed.soak.ground import Ground
from testbed.soak.rule import Keys, Rule, alone, nothing

_MOST_TRANSFERS, _MOST_CHUNKS, _MOST_FLOWS = 4, 4, 4
_MS = 1_000_000


def _all(ground: Ground) -> tuple[str, ...]:
    return ground.pairs


def _sized(ground: Ground) -> tuple[str, ...]:
    return ground.pairs if ground.pool.size is not None else ()


def _closing(ground: Ground) -> tuple[str, ...]:
    """Whose connections come and go, so that they need ports."""
    return ground.pairs if ground.pool.closes and ground.pool.numbers > 1 else ()


def _shrink(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"lose": dice.whole(1, ground.pool.size or 1)}


def _ports(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"left": dice.whole(1, ground.pool.numbers - 1)}


def _drop(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    connection = dice.whole(0, ground.pool.numbers - 1)
    return {"connection": connection, "how": dice.pick(("clean", "reset"))}


def _transfer(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"transfer": dice.whole(1, _MOST_TRANSFERS)} if dice.chance(0.7) else {}


def _chunk(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    chunk: Keys = {"chunk": dice.whole(1, _MOST_CHUNKS)} if dice.chance(0.5) else {}
    return chunk | _transfer(dice, ground, names)


def _reset(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    others = [name for name in ground.agents() if name not in names]
    keys: Keys = {"peer": dice.pick(others)} if others and dice.chance(0.4) else {}
    return keys | ({"port": dice.pick(("data", "control"))} if dice.chance(0.5) else {})


def _traffic(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    keys: Keys = {
        "to": dice.pick([name for name in ground.agents() if name not in names]),
        "flows": dice.whole(1, _MOST_FLOWS),
    }
    if dice.chance(0.5):
        on, off = (str(dice.duration(_MS, 200 * _MS)) for _ in range(2))
        keys["burst"] = {"on": on, "off": off}
    return keys


PAIR_RULES: tuple[Rule, ...] = (
    Rule(ShrinkFault, _sized, _shrink, alone("shrink"), most=1),
    Rule(PortsFault, _closing, _ports, alone("ports"), most=1, more_is_milder=frozenset({"left"})),
    Rule(DropConnectionFault, _all, _drop, alone("drop-connection"), most=1, passing=False),
    Rule(SkipChunkFault, _all, _chunk, alone("skip-chunk"), most=1),
    Rule(StaleFault, _all, _transfer, alone("stale"), most=1),
)
FLOW_RULES: tuple[Rule, ...] = (
    Rule(ResetFault, lambda ground: ground.agents(), _reset, nothing, passing=False),
    Rule(TrafficFault, lambda ground: ground.agents(), _traffic, nothing, most=1),
)
