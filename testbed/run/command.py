"""Faults for a run that is under way on the real clock, ordered from outside."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from testbed.contract.fault import AgentFault, LinkFault
from testbed.contract.lateness import BARRIER_FILE
from testbed.contract.order import Answer, ByHand, Order, answer_to, order_path, orders_of
from testbed.contract.plan import Plan
from testbed.contract.sieve import Hold
from testbed.errors import LabError, UsageError
from testbed.lab.guest.progress import read_progress
from testbed.plan.faults import plan_faults
from testbed.run.orders import write_whole
from testbed.run.underway import living_owner
from testbed.scenario import load_scenario

ANSWER_S = 10.0
"""Wall time for an answer: a look takes 0.1 s, and a fault of nodes up to some seconds."""
_TIMES = ("at", "when", "every", "times", "probability")


def apply_fault(run: Path, text: str, cache: Path) -> tuple[str, Answer]:
    """Lets a fault begin now; returns its name and when it was in force.

    Args:
        text: as in a scenario, ``{kind: down, link: wan1, duration: 1 s}``, without ``at``.

    Raises:
        UsageError: the run is not under way on the real clock, or the fault is none.
        ScenarioError, PlanError: the fault cannot be, or not beside those there are.
        LabError: the lab did not do it.
    """
    attempt = "apply a fault"
    plan, now_ns = _under_way(attempt, run, cache)
    given = _mapping(text)
    if times := [key for key in _TIMES if key in given]:
        raise UsageError(
            attempt, text, f"{', '.join(times)} cannot be given: it begins at once, and once",
            "leave that out; a duration may be given",
        )  # fmt: skip
    before = orders_of(run)
    given.setdefault("name", f"order-{len(before) + 1}")
    still = [_mapping(order.text) for order in _in_force(run, before, now_ns).values()]
    asked = {**given, "at": f"{now_ns} ns"}
    scenario = load_scenario(str(run / "scenario.yaml"))
    planned = scenario.file.model_dump(mode="json", exclude_none=True)["faults"]
    scenario = load_scenario(
        str(run / "scenario.yaml"), (f"faults={json.dumps([*planned, *still, asked])}",)
    )
    fault = plan_faults(scenario, plan.network, plan.seed, plan.scale, plan.lab)[-1]
    if isinstance(fault, AgentFault):
        raise UsageError(
            attempt, text, "agents apply their own faults at times that they are told beforehand",
            "write it into the scenario's faults",
        )  # fmt: skip
    if isinstance(fault, LinkFault) and isinstance(fault.effect, Hold):
        raise UsageError(
            attempt, text, "a link that is to be held is built with a gate",
            "write it into the scenario's faults",
        )  # fmt: skip
    return fault.name, _ordered(run, Order(act="begin", fault=fault, text=json.dumps(asked)))


def end_fault(run: Path, name: str, cache: Path) -> Answer:
    """Ends a fault that was ordered.

    Raises:
        UsageError: the run is not under way on the real clock, or no order is called so.
        LabError: the lab did not do it.
    """
    _under_way("end a fault", run, cache)
    begun: dict[str, ByHand] = {
        order.fault.name: order.fault for order in orders_of(run) if order.act == "begin"
    }
    if name not in begun:
        raise UsageError(
            "end a fault", name, "no fault of that name was applied to this run; those of its "
            "scenario end when the plan says",
            f"applied: {', '.join(begun) or 'none'}",
        )  # fmt: skip
    return _ordered(run, Order(act="end", fault=begun[name]))


def _under_way(attempt: str, run: Path, cache: Path) -> tuple[Plan, int]:
    """The plan, and the emulated time since the barrier by the lab's own clock, which is not this
    machine's; it marks whole seconds."""
    try:
        plan = Plan.model_validate_json((run / "plan.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(attempt, str(run), "it is no run folder", "name one of runs/") from error
    if plan.clock == "virtual":
        raise UsageError(
            attempt, str(run), "nobody outside is at any time of a virtual clock",
            "write the fault into the scenario's faults, or stop the clock with its breakpoints",
        )  # fmt: skip
    if living_owner(run, cache) is None:
        raise UsageError(attempt, str(run), "it is not under way", "start: testbed run")
    now_ns, barrier = read_progress(run).virtual_ns, run / BARRIER_FILE
    barrier_ns = int(barrier.read_text(encoding="ascii") or 0) if barrier.is_file() else 0
    if not 0 < barrier_ns <= now_ns:
        raise UsageError(
            attempt, str(run), "its agents have not begun yet", "try again when they have"
        )
    return plan, plan.scale.emulated_ns(now_ns - barrier_ns)


def _in_force(run: Path, orders: tuple[Order, ...], now_ns: int) -> dict[str, Order]:
    """By name, those that began and neither were ended nor are over."""
    live: dict[str, Order] = {}
    for number, order in enumerate(orders, 1):
        answer = answer_to(run, number)
        if answer is None or answer.refused:
            continue
        if order.act == "end":
            live.pop(order.fault.name, None)
        elif order.lasts_ns is None or answer.at_ns + order.lasts_ns > now_ns:
            live[order.fault.name] = order
    return live


def _mapping(text: str) -> dict[str, object]:
    try:
        loaded = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise UsageError("apply a fault", text, "it is no YAML", _EXAMPLE) from error
    if not isinstance(loaded, dict):
        raise UsageError("apply a fault", text, "it is no mapping", _EXAMPLE)
    return {str(key): value for key, value in loaded.items()}


def _ordered(run: Path, order: Order) -> Answer:
    """Gives an order and waits for the answer."""
    number = len(orders_of(run)) + 1
    order_path(run, number).parent.mkdir(exist_ok=True)
    write_whole(order_path(run, number), order)
    patience = time.monotonic() + ANSWER_S
    while (answer := answer_to(run, number)) is None:
        if time.monotonic() > patience:
            raise LabError(
                f"{order.act} a fault", order.fault.name,
                f"the run did not answer within {ANSWER_S:g} s", "see logs/guest.log",
            )  # fmt: skip
        time.sleep(0.02)
    if answer.refused:
        raise LabError(f"{order.act} a fault", order.fault.name, answer.refused)
    return answer


_EXAMPLE = "write it as in a scenario: '{kind: down, link: wan1, duration: 1 s}'"
