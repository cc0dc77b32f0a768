"""Configuration files of all agents: one value each, derived from the plan's parts."""

from __future__ import annotations

from testbed.contract.agent import CONTROL_PORT, DATA_PORT, AgentConfig, Peer, Request
from testbed.contract.role import Role
from testbed.plan.guestpath import RunPaths
from testbed.plan.roster import Member, names_of
from testbed.plan.serving import serving_of
from testbed.scenario.value import Scenario

ALONE = (0, 1)
"""All requests; what an agent is told that sends none."""


def agent_configs(
    scenario: Scenario,
    members: tuple[Member, ...],
    requests: tuple[Request, ...],
    seed: int,
    barrier_ns: int,
    paths: RunPaths,
    slow: float = 1.0,
) -> tuple[AgentConfig, ...]:
    """One configuration per agent, in build order.

    All agents get the run's seed itself: prompts and the shared base document must
    come out alike in every process.
    """
    longest = max((request.input_tokens for request in requests), default=0)
    prompt_tokens = max(longest, scenario.shape.block_tokens)
    arrivals = scenario.workload.arrivals
    users = arrivals.users if arrivals.kind == "closed" else None
    model = scenario.agent_model(paths.weights)
    serving = serving_of(scenario, members, requests, seed)
    clients = names_of(members, Role.CLIENT)
    turns = {name: (n, len(clients)) for n, name in enumerate(clients)}
    return tuple(
        AgentConfig(
            node=member.name,
            role=member.role,
            seed=seed,
            barrier_ns=barrier_ns,
            window=scenario.window,
            address=member.address,
            control_port=CONTROL_PORT,
            data_port=DATA_PORT,
            peers=_peers(member, members),
            model=model,
            shape=scenario.shape,
            hardware=scenario.hardware_of(member.role, member.site),
            pool=scenario.pool,
            tcp=scenario.tcp,
            verify=scenario.file.verify,
            workload=paths.workload if member.role is Role.CLIENT else None,
            prompt_tokens=prompt_tokens,
            closed_loop=None if users is None else _users_of(users, turns.get(member.name, ALONE)),
            turn=turns.get(member.name, ALONE),
            events=paths.events(member.name),
            slow=slow,
            defects=scenario.file.defects,
            serving=serving,
        )
        for member in members
    )


def _users_of(users: int, turn: tuple[int, int]) -> int:
    """Users of one client, where clients share them evenly; the first ones take what is over."""
    return users // turn[1] + (turn[0] < users % turn[1])


def _peers(member: Member, members: tuple[Member, ...]) -> tuple[Peer, ...]:
    """Every agent of another role, but of P and RLD only those of the own site.

    Equals never talk to each other, and a prompt is relayed in the site that computed it.
    """
    return tuple(
        Peer(
            name=other.name,
            role=other.role,
            address=other.address,
            control_port=CONTROL_PORT,
            data_port=DATA_PORT,
        )
        for other in members
        if other.role is not member.role
        and ({member.role, other.role} != {Role.PREFILL, Role.RELAY} or member.site == other.site)
    )
