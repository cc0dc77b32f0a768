"""Faults that agents apply themselves: whether the agent can, and which of them exclude others."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.contract.ailment import (
    AgentEffect,
    Backlog,
    DropConnection,
    FewPorts,
    Leave,
    PairEffect,
    Shrink,
    Stall,
)
from testbed.contract.handoff import HandoffMode
from testbed.contract.network import Network
from testbed.contract.pool import Pool
from testbed.contract.role import NodeKind, Role
from testbed.errors import PlanError
from testbed.scenario.ailments import OnAgents, OnPairs
from testbed.scenario.value import Scenario

_ATTEMPT = "plan a fault"
_RECEIVERS = frozenset({Role.DECODE, Role.RELAY})


def ailment(
    choice: OnAgents, nodes: tuple[str, ...], network: Network, place: str, seed: int
) -> AgentEffect:
    """What agents do to themselves; ``seed`` is for what is left to chance.

    Raises:
        PlanError: a node is no agent, or none that this can happen to.
    """
    effect = choice.effect()
    roles, why = frozenset(Role), "is no agent"
    match effect:
        case Stall() | Backlog():
            roles, why = _RECEIVERS, "does not receive KV"
        case Leave():
            roles, why = frozenset({Role.CLIENT}), "is no client"
            _refuse_unheard(effect, network, place)
            effect = effect.model_copy(update={"seed": seed})
    able = [
        node.name
        for node in network.nodes
        if node.kind is NodeKind.AGENT and node.role is not None and node.role in roles
    ]
    for name in nodes:
        if name not in able:
            raise PlanError(_ATTEMPT, place, f"{name} {why}", f"use one of {', '.join(able)}")
    return effect


def pair_ailment(
    choice: OnPairs, scenario: Scenario, network: Network, place: str
) -> tuple[str, PairEffect]:
    """The sender, and what it does to itself.

    Raises:
        PlanError: the two are no pair, or its pool is none that this can happen to.
    """
    sender, _ = known_pair(choice.pair, scenario, network, place)
    effect, pool = choice.effect(), scenario.pool
    for cause, remedy in _refusals(effect, pool):
        raise PlanError(_ATTEMPT, place, cause, remedy)
    return sender, effect


def known_pair(
    pair: tuple[str, str], scenario: Scenario, network: Network, place: str
) -> tuple[str, str]:
    """The pair itself.

    Raises:
        PlanError: the one sends no KV to the other.
    """
    known = pairs(scenario, network)
    if pair not in known:
        listed = ", ".join(f"[{sender}, {receiver}]" for sender, receiver in known)
        raise PlanError(_ATTEMPT, place, f"{pair[0]} sends no KV to {pair[1]}", f"pairs: {listed}")
    return pair


def pairs(scenario: Scenario, network: Network) -> tuple[tuple[str, str], ...]:
    """Every sender of KV with each of its receivers, in build order."""
    serving = scenario.file.serving
    nodes = [node for node in network.nodes if node.role is not None]
    found = []
    for one in nodes:
        for other in nodes:
            match one.role, other.role:
                case Role.PREFILL, Role.DECODE:
                    found.append((one.name, other.name))
                case Role.PREFILL, Role.RELAY if one.site == other.site and serving is not None:
                    found.append((one.name, other.name))
                case Role.RELAY, Role.DECODE if (
                    serving is not None and serving.handoff.mode is HandoffMode.INCREMENTAL_KV
                ):
                    found.append((one.name, other.name))
    return tuple(found)


def _refuse_unheard(leave: Leave, network: Network, place: str) -> None:
    if leave.clean and not any(node.role is Role.ROUTER for node in network.nodes):
        raise PlanError(
            _ATTEMPT, place, "without a router there is nobody to tell of a clean leave",
            "set how: unclean, or give the scenario a serving plane",
        )  # fmt: skip


def _refusals(effect: PairEffect, pool: Pool) -> Iterable[tuple[str, str]]:
    """What stands against it: cause and remedy."""
    match effect:
        case Shrink(lose=lose) if pool.size is None:
            yield f"the pool has no size that it could lose {lose} of", "set pool.size"
        case Shrink(lose=lose) if pool.size is not None and lose > pool.size:
            yield f"the pool has {pool.size} connections", f"let it lose at most {pool.size}"
        case FewPorts() if not pool.closes:
            yield (
                f"a pool of kind {pool.discipline.kind} keeps its source ports",
                "use pool.discipline per-transfer or lifo",
            )
        case FewPorts(left=left) if left >= pool.numbers:
            yield f"the pool has {pool.numbers} source ports", "leave fewer"
        case DropConnection(connection=connection) if connection >= pool.numbers:
            yield f"the pool has {pool.numbers} connections", f"use 0 to {pool.numbers - 1}"
