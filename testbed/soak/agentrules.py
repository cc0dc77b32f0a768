"""Drawing rules of the kinds that agents apply to their own work. Pure."""

from __future__ import annotations

from testbed.contract.role import Role
from testbed.scenario.ailments import (
    BacklogFault,
    ClockFault,
    DescriptorsFault,
    LeaveFault,
    SilenceFault,
    SlowFault,
    StallFault,
)
from testbed.soak.dice import Dice
from testbed.soak.ground import Ground
from testbed.soak.rule import Keys, Rule, alone, no_keys

_MOST_LEFT, _LONGEST_QUEUE, _MOST_TOKENS = 8, 8, 16
_MS, _HOUR_NS = 1_000_000, 3_600_000_000_000


def _anyone(ground: Ground) -> tuple[str, ...]:
    return ground.agents()


def _clients(ground: Ground) -> tuple[str, ...]:
    return ground.agents(*(role for role in Role if role is not Role.CLIENT))


def _slow(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"factor": max(1.1, round(dice.between(1.1, 30), 1))}


def _descriptors(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"left": dice.whole(0, _MOST_LEFT)}


def _clock(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {dice.pick(("ahead", "behind")): str(dice.duration(_MS, _HOUR_NS))}


def _backlog(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"length": dice.whole(0, _LONGEST_QUEUE)}


def _silence(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"delay": str(dice.duration(_MS, 5_000 * _MS))} if dice.chance(0.6) else {}


def _leave(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    hears = any(node.role is Role.ROUTER for node in ground.nodes)
    keys: Keys = {"how": dice.pick(("clean", "unclean") if hears else ("unclean",))}
    if dice.chance(0.5):
        keys["after"] = str(dice.duration(_MS, 3_000 * _MS))
    else:
        keys["tokens"] = dice.whole(1, _MOST_TOKENS)
    return keys | {"share": str(dice.share(0.05, 1.0))}


AGENT_RULES: tuple[Rule, ...] = (
    Rule(SlowFault, _anyone, _slow, alone("slow")),
    Rule(StallFault, lambda ground: ground.receivers(), no_keys, alone("stall")),
    Rule(
        DescriptorsFault, _anyone, _descriptors, alone("descriptors"),
        more_is_milder=frozenset({"left"}),
    ),
    Rule(ClockFault, _anyone, _clock, alone("clock")),
    Rule(
        BacklogFault, lambda ground: ground.receivers(), _backlog, alone("backlog"),
        more_is_milder=frozenset({"length"}),
    ),
    Rule(SilenceFault, _anyone, _silence, alone("silence")),
    Rule(LeaveFault, _clients, _leave, alone("leave")),
)  # fmt: skip
