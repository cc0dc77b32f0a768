"""Runs inside the guest: builds the plan's network, lets the agents work, takes everything down.

The only program the guest starts. Reads ``/mnt/run/plan.json``; writes events, logs,
``ledger.jsonl``, ``fidelity.json`` and, when it fails, ``failure.json`` for the host to raise.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from testbed.contract.lateness import BARRIER_FILE
from testbed.contract.plan import Plan
from testbed.contract.progress import FOLDER, Mark
from testbed.contract.role import NodeKind
from testbed.contract.trigger import Reached
from testbed.errors import AgentError, ExitStatus, FidelityError, LabError, TestbedError
from testbed.fidelity.calibrate import Effort, calibrate_links
from testbed.fidelity.precision import EXACT, LIVE
from testbed.lab.crew import Crew
from testbed.lab.faults import Faults
from testbed.lab.guard import Guard
from testbed.lab.ledger import Ledger
from testbed.lab.mininet.lab import MininetLab
from testbed.lab.namespace import HERE, Namespaces
from testbed.lab.protocol import Agents, Lab
from testbed.lab.sampler import Sampler
from testbed.lab.wires import Wires
from testbed.run.awaited import Awaited
from testbed.run.course import Course, take_course
from testbed.run.deed import Deed, planned_deeds
from testbed.run.orders import Orders
from testbed.run.standstill import Standstill

_LINGER_NS = 50_000_000
"""Emulated time between the last client's end and that of all others, where there is a scale."""
_LIMITS = (
    ("net.core.rmem_max", "1073741824"),
    ("net.core.wmem_max", "1073741824"),
    ("net.core.netdev_max_backlog", "1000000"),
    ("net.ipv4.tcp_mem", "100000000\t100000000\t100000000"),
    ("vm.percpu_pagelist_high_fraction", "1000000"),
)
"""Limits of the guest's kernel that hold for every namespace. Large queues of padding are one
shared page and need no memory, so TCP must not slow down for them; and without the last line freed
pages come back scattered, each a mapping of its own on the host."""
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")

Work: TypeAlias = Callable[[Plan, Path, Lab, Wires, Ledger, Mark], None]
"""What is done in a built lab whose links read back as planned."""
Hire: TypeAlias = Callable[[Plan, Path, Lab, Ledger], Agents]


def run_plan(run: Path, work: Work) -> None:
    """The life of one run inside the guest.

    Raises:
        FidelityError: what the kernel holds is not what the plan asked for.
        LabError: building failed, an agent died, or the barrier was missed.
    """
    plan = Plan.model_validate_json((run / "plan.json").read_text(encoding="utf-8"))
    mark = Mark(run / FOLDER, "lab")
    mark.touch(time.time_ns())
    if plan.host == "guest":
        Namespaces({"guest": HERE}).write_sysctls("guest", _LIMITS)
        _allow(plan.agents[0].tcp.congestion)
    ledger = Ledger(run / "ledger.jsonl")
    try:
        with (
            built_lab(plan, run, ledger) as lab,
            Wires(plan.network, lab.paths()) as wires,
        ):
            mark.touch(time.time_ns())
            wires.apply()
            if plan.demand is not None:
                from testbed.run.headroom import refuse_beyond_headroom

                refuse_beyond_headroom(plan, plan.demand, run, lab)
                wires.apply()
            with _blaming_the_fallen(plan, lab):
                _prove(plan, run, lab, wires)
            mark.touch(time.time_ns())
            work(plan, run, lab, wires, ledger, mark)
    finally:
        ledger.close()


def _allow(congestion: str) -> None:
    """Lets namespaces use a congestion control that the kernel keeps for its first one (DCTCP)."""
    allowed = _ALLOWED.read_text(encoding="ascii").split()
    if congestion not in allowed:
        _ALLOWED.write_text(" ".join((*allowed, congestion)), encoding="ascii")


@contextmanager
def built_lab(plan: Plan, run: Path, ledger: Ledger) -> Iterator[Lab]:
    """The plan's network, built of what the plan says: namespaces, or containers."""
    if plan.lab == "mininet":
        with MininetLab(plan.network, ledger) as lab:
            yield lab
        return
    from testbed.lab.compose.inside import guest_compose_lab

    with guest_compose_lab(plan, run, ledger) as containers:
        yield containers


def crew_of(plan: Plan, run: Path, lab: Lab, ledger: Ledger) -> Agents:
    """The agents of a run, as its lab starts them."""
    if isinstance(lab, MininetLab):
        return Crew(plan, run, lab, ledger)
    from testbed.lab.compose.crew import ComposeCrew
    from testbed.lab.compose.lab import ComposeLab

    if not isinstance(lab, ComposeLab):
        raise LabError("hire the agents", plan.scenario, f"unknown lab {type(lab).__name__}")
    return ComposeCrew(plan, run, lab)


def let_agents_work(
    plan: Plan, run: Path, lab: Lab, wires: Wires, ledger: Ledger, mark: Mark,
    hire: Hire = crew_of, deeds: Sequence[Deed] = (),
) -> None:  # fmt: skip
    """Starts the agents and samples the links until every client has ended."""
    reached = Reached(run)
    if any(fault.trigger is not None for fault in plan.faults):
        reached.open()
    with hire(plan, run, lab, ledger) as crew, Awaited(plan.faults, reached) as awaited:
        crew.wait_ready(mark)
        barrier = crew.barrier_ns
        if time.time_ns() >= barrier:
            raise LabError(
                "pass the barrier", plan.scenario,
                f"the agents were ready {(time.time_ns() - barrier) / 1e9:.3f} s after it",
            )  # fmt: skip
        scale, live = plan.scale, plan.clock == "real"
        if live:
            (run / BARRIER_FILE).write_text(str(barrier), encoding="ascii")
        path = run / "events" / "lab.jsonl"
        with (
            Sampler(wires, path, barrier, scale, live) as sampler,
            Faults(lab, wires, crew, sampler, ledger) as faults,
            Guard(lab, wires, crew, sampler, faults) as guard,
        ):
            still = Standstill(plan, run, lab, sampler) if plan.breakpoints else None
            orders = Orders(run) if live else None
            course = Course(crew, sampler, guard, faults, mark, still, orders, awaited)
            take_course(plan, course, (*planned_deeds(plan.faults), *deeds))
        if live or scale.slow > 1:
            _linger(crew, scale.lab_ns(_LINGER_NS))
        crew.stop()


def _linger(crew: Agents, lab_ns: int) -> None:
    """Lets what is on its way arrive: in slow motion the lab is quicker than the last packets."""
    until = time.time_ns() + lab_ns
    while time.time_ns() < until:
        crew.watch(until)


@contextmanager
def _blaming_the_fallen(plan: Plan, lab: Lab) -> Iterator[None]:
    """A node that ended takes its links with it: then the links are not what is wrong."""
    try:
        yield
    except Exception as error:  # whatever it was: the end of a node comes first
        agents = {node.name for node in plan.network.nodes if node.kind is NodeKind.AGENT}
        for node, how in lab.fallen().items():
            kind = AgentError if node in agents else LabError
            raise kind("prove the links", node, how, f"see logs/{node}.log") from error
        raise


def _prove(plan: Plan, run: Path, lab: Lab, wires: Wires) -> None:
    """Measures every link, applies all of them anew, reads every field back.

    Measuring uses up packets and counters, so the links that the agents get are fresh;
    the read-back shows that they are the ones that were measured.
    """
    measured = calibrate_links(
        plan.network, lab.paths(), Effort.QUICK, LIVE if plan.clock == "real" else EXACT
    )
    wires.apply()
    fields = wires.read_back()
    sections = {
        "measured": [row.model_dump(mode="json") for row in measured],
        "fields": [row.model_dump(mode="json") for row in fields],
    }
    (run / "fidelity.json").write_text(json.dumps(sections, indent=1), encoding="utf-8")
    wrong = [f"{r.link} {r.direction} {r.quantity}: {r.measured}" for r in measured if not r.ok]
    wrong += [f"{r.link} {r.direction.value} {r.field}: {r.applied}" for r in fields if not r.ok]
    if wrong:
        raise FidelityError(
            "build the links", plan.scenario,
            f"{len(wrong)} of {len(measured) + len(fields)} quantities are not as planned, "
            f"first {wrong[0]}",
            "see fidelity.json, or run: testbed calibrate TOPOLOGY",
        )  # fmt: skip


def main(folder: str, work: Work = let_agents_work) -> int:
    """Returns the exit status for the host; 0 means that the run took place."""
    run = Path(folder)
    try:
        run_plan(run, work)
    except TestbedError as error:
        failure = {
            "kind": type(error).__name__, "attempt": error.attempt, "subject": error.subject,
            "cause": error.cause, "remedy": error.remedy,
        }  # fmt: skip
        (run / "failure.json").write_text(json.dumps(failure), encoding="utf-8")
        traceback.print_exc()
        return int(error.exit_status)
    except Exception as error:
        failure = {
            "kind": "LabError", "attempt": "run the lab", "subject": folder,
            "cause": f"{type(error).__name__}: {error}", "remedy": "see logs/guest.log",
        }  # fmt: skip
        (run / "failure.json").write_text(json.dumps(failure), encoding="utf-8")
        traceback.print_exc()
        return int(ExitStatus.INVALID)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
