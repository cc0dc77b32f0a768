"""Drawing rules of the kinds that pick out single packets of links. Pure."""

from __future__ import annotations

from testbed.contract.link import LinkSpec
from testbed.scenario.packetfault import (
    BlackholeFault,
    MarkFault,
    MtuFault,
    ReorderFault,
    SynLossFault,
)
from testbed.soak.dice import Dice
from testbed.soak.ground import Ground, carries_frames
from testbed.soak.linkrules import FEW, MANY, links, some_frames
from testbed.soak.rule import Keys, Rule, nothing

_LEAST_MTU = 68
"""Of IPv4: nothing may be larger than less."""


def _flows(dice: Dice, ground: Ground) -> Keys:
    """All packets, or those between two agents, or of one port."""
    keys: Keys = {}
    if dice.chance(0.4):
        one, other = dice.two(ground.agents())
        keys["between"] = [one, other]
    if dice.chance(0.4):
        keys["port"] = dice.pick(("data", "control"))
    return keys


def _some_flows(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return _flows(dice, ground)


def _some_packets(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    return {"share": str(dice.share(FEW, MANY))} | _flows(dice, ground)


def _large_packets(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    largest = min(way.mtu for name in names for way in ground.ways(name)) - 1
    return {"above": f"{dice.whole(_LEAST_MTU, largest)} B"} | _flows(dice, ground)


def _any(way: LinkSpec) -> bool:
    return True


PACKET_RULES: tuple[Rule, ...] = (
    Rule(ReorderFault, links(carries_frames), some_frames, nothing),
    Rule(SynLossFault, links(_any), _some_packets, nothing),
    Rule(BlackholeFault, links(_any), _some_flows, nothing),
    Rule(
        MtuFault, links(carries_frames), _large_packets, nothing,
        more_is_milder=frozenset({"above"}),
    ),
    Rule(MarkFault, links(carries_frames), _some_packets, nothing),
)  # fmt: skip
