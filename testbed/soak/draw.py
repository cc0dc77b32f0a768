"""The generator: a seed and a number become a schedule. Pure.

What it draws is possible by construction: the planner refuses none of it, or a rule is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from testbed.errors import UsageError
from testbed.plan.derive import derived_seed
from testbed.scenario.ailments import OnPairs
from testbed.scenario.injection import KINDS, FaultChoice, kind_of
from testbed.scenario.timed import OnLinks, Timed
from testbed.soak.agentrules import AGENT_RULES
from testbed.soak.dice import Dice
from testbed.soak.ground import Ground
from testbed.soak.linkrules import LINK_RULES
from testbed.soak.noderules import NODE_RULES
from testbed.soak.packetrules import PACKET_RULES
from testbed.soak.pairrules import FLOW_RULES, PAIR_RULES
from testbed.soak.rule import Keys, Rule, claims, meet, spans
from testbed.soak.schedule import Drawn, Schedule
from testbed.units import Duration

RULES: Mapping[str, Rule] = {
    kind_of(rule.model): rule
    for rule in (
        *LINK_RULES, *PACKET_RULES, *NODE_RULES, *AGENT_RULES, *PAIR_RULES, *FLOW_RULES
    )
}  # fmt: skip
UNDRAWN: Mapping[str, str] = {
    "restart": "agents of namespaces are forked once, together; only containers start anew",
    "hold": "its link has a gate all the time, beside which jitter that keeps order is refused",
    "leak": "pool-bounded fails by design: its loans are still out when the run ends",
}
"""Kinds that are never drawn, with the reason."""
MOST_FAULTS, MOST_TIMES = 6, 5
_TRIES = 12
_ANOTHER = 0.75
"""Chance of one more fault: about three a schedule."""
_SHORTEST_NS, _LONGEST_NS = 1_000_000, 5_000_000_000
_CHOICE: TypeAdapter[Drawn] = TypeAdapter(FaultChoice)


def fault_from(keys: Mapping[str, object]) -> Drawn:
    """A fault as a scenario file's keys give it. Raises pydantic's ValidationError."""
    return _CHOICE.validate_python(dict(keys))


@dataclass(frozen=True, slots=True)
class Choice:
    """A kind that can be on a ground, and what it may name there."""

    rule: Rule
    names: tuple[str, ...]


def drawable(ground: Ground, kinds: Iterable[str] = ()) -> tuple[Choice, ...]:
    """The kinds that can be on a ground, in the order of lists; no kinds mean all.

    Raises:
        UsageError: a kind that is unknown, never drawn, or not possible there.
    """
    wanted = tuple(kinds)
    able = {
        kind: Choice(rule, names) for kind, rule in RULES.items() if (names := rule.names(ground))
    }
    for kind in wanted:
        if kind not in able:
            why = UNDRAWN.get(kind, "nothing there can suffer it")
            raise UsageError(
                "draw faults", kind, why if kind in map(kind_of, KINDS) else "no such kind",
                f"kinds: {', '.join(able)}",
            )  # fmt: skip
    return tuple(choice for kind, choice in able.items() if not wanted or kind in wanted)


def draw_schedule(
    seed: int, number: int, ground: Ground, choices: tuple[Choice, ...] | None = None
) -> Schedule:
    """The schedule of this number in the stream of a seed: one to ``MOST_FAULTS`` faults.

    Each number has a stream of its own, so that any of them can be drawn alone.

    Args:
        choices: what may be drawn; None takes all that is possible on the ground.
    """
    dice = Dice(derived_seed(seed, "soak", str(number)))
    able = drawable(ground) if choices is None else choices
    wanted = 1
    while wanted < MOST_FAULTS and dice.chance(_ANOTHER):
        wanted += 1
    faults: list[Drawn] = []
    taken: list[tuple[Rule, Drawn]] = []
    for _ in range(wanted):
        for _ in range(_TRIES):
            choice = dice.pick(able)
            fault = _draw_fault(choice, dice, ground, faults)
            if _free(choice.rule, fault, taken, ground):
                faults.append(fault)
                taken.append((choice.rule, fault))
                break
    return Schedule(tuple(faults))


def _free(rule: Rule, fault: Drawn, taken: list[tuple[Rule, Drawn]], ground: Ground) -> bool:
    mine = claims(fault, rule, ground)
    return not any(
        own.bars(other)
        for rule_there, there in taken
        if meet(spans(fault), spans(there))
        for other in claims(there, rule_there, ground)
        for own in mine
    )


def _draw_fault(choice: Choice, dice: Dice, ground: Ground, before: list[Drawn]) -> Drawn:
    rule = choice.rule
    names = dice.some(choice.names, 1 if dice.chance(0.7) else rule.most)
    named: str | list[str] = names[0] if len(names) == 1 else list(names)
    keys: dict[str, object] = {"kind": kind_of(rule.model)}
    if issubclass(rule.model, OnLinks):
        keys["link"] = named
        keys["direction"] = dice.pick(("both", "both", "forward", "backward"))
    elif issubclass(rule.model, OnPairs):
        keys["pair"] = list(names[0].split())
    else:
        keys["node"] = named
    keys |= rule.keys(dice, ground, names)
    keys |= _times(rule, names, dice, ground, before)
    return fault_from(keys)


def _times(
    rule: Rule, names: tuple[str, ...], dice: Dice, ground: Ground, before: Sequence[Timed]
) -> Keys:
    """When: often at the very moment at which another fault begins or ends."""
    at = dice.moment(ground.sure_ns)
    edges = [edge for edge in _edges(before) if edge <= ground.sure_ns]
    if edges and dice.chance(0.2):
        at = Duration(dice.pick(edges))
    keys: Keys = {"at": str(at)}
    if not rule.passing or (rule.endless(ground, names) and dice.chance(0.15)):
        return keys
    duration = dice.duration(_SHORTEST_NS, _LONGEST_NS)
    keys["duration"] = str(duration)
    every = Duration(duration.ns + dice.duration(_SHORTEST_NS, 1_000_000_000).ns)
    times = dice.whole(2, MOST_TIMES) if dice.chance(0.3) else 1
    chancy = dice.chance(0.15)
    last_ns = ground.sure_ns if chancy else ground.last_ns
    times = min(times, 1 + (last_ns - at.ns) // every.ns)
    if times > 1:
        keys |= {"every": str(every), "times": times}
    if chancy:
        keys["probability"] = "50 %"
    return keys


def _edges(faults: Iterable[Timed]) -> list[int]:
    """Begins and ends of faults, in nanoseconds, each once, sorted."""
    return sorted(
        {
            edge
            for fault in faults
            for span in spans(fault)
            for edge in (span.begin_ns, span.end_ns)
            if edge is not None
        }
    )
