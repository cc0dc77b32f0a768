"""Drawing rules of the kinds that act on nodes. Pure."""

from __future__ import annotations

from testbed.contract.role import NodeKind, Role
from testbed.scenario.injection import (
    DisconnectFault,
    KillFault,
    PauseFault,
)
from testbed.soak.ground import Ground
from testbed.soak.rule import Rule, alone, no_keys


def _no_client(ground: Ground, names: tuple[str, ...]) -> bool:
    """A client that stands still to the end never ends, and so does the run."""
    return all(ground.node(name).role is not Role.CLIENT for name in names)


def _connected(ground: Ground) -> tuple[str, ...]:
    return tuple(node.name for node in ground.nodes if node.kind is not NodeKind.WIRE)


NODE_RULES: tuple[Rule, ...] = (
    Rule(PauseFault, lambda ground: ground.agents(), no_keys, alone("node"), _no_client),
    Rule(
        KillFault, lambda ground: ground.agents(Role.CLIENT), no_keys, alone("node"), passing=False
    ),
    Rule(DisconnectFault, _connected, no_keys, alone("node")),
)  # fmt: skip
