"""Drawing rules of the kinds that act on nodes, and of those that agents do to themselves. Pure."""

from __future__ import annotations

from testbed.contract.role import NodeKind, Role
from testbed.scenario.injection import (
    DescriptorsFault,
    DisconnectFault,
    KillFault,
    PauseFault,
    SlowFault,
    StallFault,
)
from testbed.soak.dice import Dice
from testbed.soak.ground import Ground
from testbed.soak.rule import Keys, Rule, alone, no_keys

_MOST_LEFT = 8


def _no_client(ground: Ground, names: tuple[str, ...]) -> bool:
    """A client that stands still to the end never ends, and so does the run."""
    return all(ground.node(name).role is not Role.CLIENT for name in names)


def _connected(ground: Ground) -> tuple[str, ...]:
    return tuple(node.name for node in ground.nodes if node.kind is not NodeKind.WIRE)


def _slow(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"factor": max(1.1, round(dice.between(1.1, 30), 1))}


def _descriptors(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"left": dice.whole(0, _MOST_LEFT)}


NODE_RULES: tuple[Rule, ...] = (
    Rule(PauseFault, lambda ground: ground.agents(), no_keys, alone("node"), _no_client),
    Rule(
        KillFault, lambda ground: ground.agents(Role.CLIENT), no_keys, alone("node"), passing=False
    ),
    Rule(
        DisconnectFault, _connected, no_keys,
        alone("node"),
    ),
    Rule(SlowFault, lambda ground: ground.agents(), _slow, alone("slow")),
    Rule(StallFault, lambda ground: ground.receivers(), no_keys, alone("stall")),
    Rule(
        DescriptorsFault, lambda ground: ground.agents(), _descriptors, alone("descriptors"),
        more_is_milder=frozenset({"left"}),
    ),
)  # fmt: skip
