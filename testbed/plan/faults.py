"""The faults of a plan: names looked up, repetitions and chances drawn, impossible ones refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

from testbed.contract.fault import (
    AddedDelay,
    AddedJitter,
    AgentFault,
    Effect,
    LinkFault,
    NodeFault,
    PlannedFault,
    SlowRate,
    Span,
    TrafficFault,
)
from testbed.contract.network import Link, Network
from testbed.contract.role import NodeKind
from testbed.contract.scale import RATE_STEP_BPS, Scale
from testbed.contract.sieve import Hold
from testbed.errors import PlanError
from testbed.plan.ailments import ailment, pair_ailment
from testbed.plan.derive import derived_seed
from testbed.plan.flows import plan_reset, plan_traffic
from testbed.plan.nodefaults import refuse_disconnect
from testbed.plan.packets import effect_of, hold_at_scale, with_gates
from testbed.plan.triggers import begins, meet, trigger_of
from testbed.scenario import flowfault
from testbed.scenario.ailments import OnAgents, OnPairs
from testbed.scenario.timed import OnLinks, Timed
from testbed.scenario.value import Scenario
from testbed.shaping.compile import compile_link
from testbed.shaping.faulted import faulted

_ATTEMPT = "plan a fault"


def plan_faults(
    scenario: Scenario,
    network: Network,
    seed: int,
    scale: Scale,
    lab: Literal["mininet", "compose"],
) -> tuple[PlannedFault, ...]:
    """All faults of a scenario against the network as it is built.

    Args:
        network: in the lab's time, as ``paced`` makes it.

    Raises:
        PlanError: an unknown link or node, a time after the end, two of one name, or faults that
            cannot act at once. The subject is where the scenario says it, ``file:line``.
    """
    planned: list[PlannedFault] = []
    names = fault_names(scenario)
    for index, choice in enumerate(scenario.file.faults):
        place = scenario.fault_places[index] if scenario.fault_places else f"faults.{index}"
        name = names[index]
        if any(other.name == name for other in planned):
            raise PlanError(_ATTEMPT, place, f"another fault is called {name!r}", "rename one")
        spans = tuple(_spans(choice, place, scenario, random.Random(
            derived_seed(seed, "fault", str(index))
        )))  # fmt: skip
        if isinstance(choice, OnLinks):
            links = _links(_listed(choice.link), network, place)
            drawn = derived_seed(seed, "fault", str(index), "packets")
            effect = effect_of(choice, network, index, drawn, place)
            planned.append(
                LinkFault(
                    name=name, place=place, spans=spans, links=links,
                    forward=choice.direction != "backward",
                    backward=choice.direction != "forward",
                    effect=_at_scale(effect, scale),
                )
            )  # fmt: skip
            continue
        if isinstance(choice, OnPairs):
            sender, own_effect = pair_ailment(choice, scenario, network, place)
            planned.append(
                AgentFault(name=name, place=place, spans=spans, nodes=(sender,), effect=own_effect)
            )
            continue
        nodes = _nodes(_listed(choice.node), network, place)
        if isinstance(choice, flowfault.ResetFault):
            planned.append(plan_reset(choice, name, place, spans, nodes, network))
            continue
        if isinstance(choice, flowfault.TrafficFault):
            drawn = derived_seed(seed, "fault", str(index), "traffic")
            others = [one for one in planned if isinstance(one, TrafficFault)]
            planned.append(
                plan_traffic(choice, name, place, spans, nodes, network, drawn, scale, others)
            )
            continue
        if isinstance(choice, OnAgents):
            own = ailment(choice, nodes, network, place, derived_seed(seed, "leave", str(index)))
            planned.append(AgentFault(name=name, place=place, spans=spans, nodes=nodes, effect=own))
            continue
        fault = NodeFault(name=name, place=place, spans=spans, nodes=nodes, act=choice.kind)
        _refuse_return(fault, network)
        refuse_disconnect(fault, network, lab)
        if lab == "mininet":
            _refuse_without_containers(fault, network)
        planned.append(fault)
    planned = [
        fault
        if choice.when is None
        else fault.model_copy(
            update={"trigger": trigger_of(choice.when, scenario, network, fault.place)}
        )
        for fault, choice in zip(planned, scenario.file.faults, strict=True)
    ]
    _refuse_together(planned, with_gates(network, planned))
    _refuse_busy_nodes(planned, network)
    _refuse_doubled(planned)
    return tuple(planned)


def fault_names(scenario: Scenario) -> tuple[str, ...]:
    """Name of each fault of the scenario: its own, or its kind and number."""
    return tuple(
        choice.name or f"{choice.kind}-{index + 1}"
        for index, choice in enumerate(scenario.file.faults)
    )


def agent_faults(faults: tuple[PlannedFault, ...], node: str) -> tuple[AgentFault, ...]:
    """Those that one agent applies itself."""
    return tuple(one for one in faults if isinstance(one, AgentFault) and node in one.nodes)


def _listed(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _spans(choice: Timed, place: str, scenario: Scenario, draw: random.Random) -> Iterator[Span]:
    window = scenario.window
    last_ns = window.end_ns + window.drain_ns
    first_ns = 0 if choice.at is None else choice.at.ns
    for turn in range(choice.times or 1):
        begin_ns = first_ns + turn * (choice.every.ns if choice.every else 0)
        if begin_ns >= last_ns:
            raise PlanError(
                _ATTEMPT, place,
                f"it would begin {begin_ns / 1e9:g} s after the barrier, and the run ends after "
                f"{last_ns / 1e9:g} s at the latest",
                "let it begin earlier, less often, or make the window longer",
            )  # fmt: skip
        if draw.random() < choice.probability.fraction:
            end_ns = None if choice.lasts_ns is None else begin_ns + choice.lasts_ns
            yield Span(begin_ns=begin_ns, end_ns=end_ns)


def _links(names: tuple[str, ...], network: Network, place: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for name in names:
        matching = [link.name for link in network.links if name in (link.name, link.kind)]
        if not matching:
            classes = sorted({link.kind for link in network.links})
            raise PlanError(
                _ATTEMPT, place, f"the network has no link {name!r}, and no class of that name",
                f"links: {', '.join(link.name for link in network.links)}; "
                f"classes: {', '.join(classes)}",
            )  # fmt: skip
        found.update(dict.fromkeys(matching))
    return tuple(found)


def _nodes(names: tuple[str, ...], network: Network, place: str) -> tuple[str, ...]:
    known = [node.name for node in network.nodes]
    for name in names:
        if name not in known:
            raise PlanError(
                _ATTEMPT, place, f"the network has no node {name!r}", f"nodes: {', '.join(known)}"
            )
    return tuple(dict.fromkeys(names))


def _refuse_return(fault: NodeFault, network: Network) -> None:
    """An agent that was killed or started anew has no part in the run any more."""
    kinds = {node.name: node.kind for node in network.nodes}
    ends = any(span.end_ns is not None for span in fault.spans)
    if fault.act == "restart" and ends:
        raise PlanError(_ATTEMPT, fault.place, "a restart takes no duration", "leave it out")
    for name in fault.nodes:
        if fault.act == "kill" and ends and kinds[name] is NodeKind.AGENT:
            raise PlanError(
                _ATTEMPT, fault.place,
                f"{name} is an agent, and a killed agent does not come back",
                "leave duration, every and times out",
            )  # fmt: skip


def _refuse_without_containers(fault: NodeFault, network: Network) -> None:
    """In the Mininet lab agents are processes that are forked once; others have no process."""
    kinds = {node.name: node.kind for node in network.nodes}
    for name in fault.nodes:
        bare = fault.act in ("pause", "kill") and kinds[name] is not NodeKind.AGENT
        if bare or fault.act == "restart":
            why = f"{name} has no process" if bare else "agents are forked once, together"
            raise PlanError(
                _ATTEMPT, fault.place, f"{fault.act} {name}: in the Mininet lab {why}",
                "run it with --lab compose",
            )  # fmt: skip


def _refuse_together(planned: list[PlannedFault], network: Network) -> None:
    """Every set of faults that meets on a direction of a link must be possible."""
    for link in network.links:
        mine = [
            one for one in planned if isinstance(one, LinkFault) and link.name in one.links
        ]  # fmt: skip
        for fault in mine:
            for span in fault.spans:
                with_it = [one for one in mine if _acts_with(one, fault, span)]
                _refuse_set(link, with_it, fault.place)


def _refuse_doubled(planned: list[PlannedFault]) -> None:
    """An agent or a pair suffers one fault of each kind at a time; different kinds may meet."""
    taken: dict[tuple[str, str, str], list[tuple[Span, AgentFault]]] = {}
    for fault in planned:
        if not isinstance(fault, AgentFault):
            continue
        for node in fault.nodes:
            peer = str(getattr(fault.effect, "peer", ""))
            mine = taken.setdefault((node, peer, fault.effect.kind), [])
            for span in fault.spans:
                for other, earlier in mine:
                    if meet(fault, span, earlier, other):
                        raise PlanError(
                            _ATTEMPT, fault.place,
                            f"{node} is still under {earlier.name} when {fault.name} "
                            f"{begins(fault, span)}",
                            "let one end before the next of its kind begins",
                        )  # fmt: skip
            mine.extend((span, fault) for span in fault.spans)


def _refuse_busy_nodes(planned: list[PlannedFault], network: Network) -> None:
    """A node suffers one fault at a time: what is killed cannot be paused."""
    agents = {node.name for node in network.nodes if node.kind is NodeKind.AGENT}
    taken: dict[str, list[tuple[Span, NodeFault]]] = {}
    for fault in planned:
        if not isinstance(fault, NodeFault):
            continue
        for node in fault.nodes:
            for span in fault.spans:
                at_once = fault.act == "restart" and node not in agents
                mine = span.model_copy(update={"end_ns": span.begin_ns + 1}) if at_once else span
                for other, earlier in taken.setdefault(node, []):
                    if meet(fault, mine, earlier, other):
                        raise PlanError(
                            _ATTEMPT, fault.place,
                            f"{node} is still under {earlier.name} when {fault.name} "
                            f"{begins(fault, span)}",
                            "let one fault of a node end before the next begins",
                        )  # fmt: skip
                taken[node].append((mine, fault))


def _acts_with(one: LinkFault, fault: LinkFault, span: Span) -> bool:
    """Whether ``one`` may be in force when ``fault`` begins; those that wait, with every other."""
    if one.trigger == fault.trigger:
        return any(_covers(other, span.begin_ns) for other in one.spans)
    return one.trigger is not None


def _covers(span: Span, at_ns: int) -> bool:
    return span.begin_ns <= at_ns and (span.end_ns is None or at_ns < span.end_ns)


def _refuse_set(link: Link, acting: list[LinkFault], place: str) -> None:
    for way, spec in (("forward", link.forward), ("backward", link.backward)):
        effects = [one.effect for one in acting if getattr(one, way)]
        try:
            compile_link(faulted(spec, effects, f"{link.name} {way}"), f"{link.name} {way}")
        except PlanError as error:
            names = ", ".join(one.name for one in acting)
            raise PlanError(
                _ATTEMPT, place, f"{link.name} {way} under {names}: {error.cause}", error.remedy
            ) from error


def _at_scale(effect: Effect, scale: Scale) -> Effect:
    """As built: smaller by the size, in slow motion."""
    match effect:
        case SlowRate():
            bps = effect.rate_bps * scale.size / scale.slow
            return SlowRate(rate_bps=max(1, round(bps / RATE_STEP_BPS)) * RATE_STEP_BPS)
        case Hold():
            return hold_at_scale(effect, scale)
        case AddedDelay():
            return AddedDelay(delay_ns=scale.lab_ns(effect.delay_ns))
        case AddedJitter(jitter=jitter):
            spread_ns = scale.lab_ns(jitter.spread_ns)
            return AddedJitter(jitter=jitter.model_copy(update={"spread_ns": spread_ns}))
        case _:
            return effect
