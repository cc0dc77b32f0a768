"""The fixed facts of a run folder that metrics need: its plan, its requests, its window."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from testbed.contract.agent import AgentConfig, Request, Window
from testbed.contract.event import Kind
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.contract.serving import FirstToken
from testbed.errors import AnalysisError
from testbed.metrics.events import Events
from testbed.metrics.table import Integers
from testbed.workload import read_requests

Flags = NDArray[np.bool_]
NOT_WHOLE = "is this a run folder, and is it whole? run the scenario again"
NOT_ITS_OWN = "the events are not those of this plan and workload; run the scenario again"


@dataclass(frozen=True, slots=True)
class Run:
    """A plan and its requests; request ids are the positions in ``requests``."""

    plan: Plan
    requests: tuple[Request, ...]

    @property
    def window(self) -> Window:
        """The phases, the same for all agents."""
        return self.plan.agents[0].window

    @property
    def measure_s(self) -> float:
        """Length of the measuring window in seconds."""
        return self.window.measure_ns / 1e9

    @property
    def closed_loop(self) -> bool:
        """Whether clients wait for answers before they send again."""
        return any(agent.closed_loop is not None for agent in self.plan.agents)

    @property
    def serves(self) -> bool:
        """Whether a router and prefix caches decide, not the workload."""
        return self.plan.agents[0].serving is not None

    @property
    def first_own(self) -> int:
        """First position of an answer that decode emits: 1 where P emits position 0."""
        serving = self.plan.agents[0].serving
        return int(serving is not None and serving.first_token is FirstToken.PREFILL)

    def crosses(self, sender: str, receiver: str) -> bool:
        """Whether two agents are at different sites; those of an unnamed site are."""
        serving = self.plan.agents[0].serving
        sites = dict(serving.site_of) if serving is not None else {}
        return sender not in sites or sites[sender] != sites.get(receiver)

    @property
    def capacity_bps(self) -> float:
        """Payload bit/s that all legs together carry from P to MD; 0 where there is no leg."""
        return self.plan.offered.legs * self.plan.offered.leg_payload_bps

    def agents(self, role: Role) -> tuple[AgentConfig, ...]:
        """The agents of one role, in order of the plan."""
        return tuple(agent for agent in self.plan.agents if agent.role is role)

    def agent(self, node: str) -> AgentConfig:
        """The configuration of ``node``.

        Raises:
            AnalysisError: the plan has no such agent.
        """
        for agent in self.plan.agents:
            if agent.node == node:
                return agent
        raise AnalysisError(
            "compute metrics", node, "events name an agent that the plan lacks", NOT_ITS_OWN
        )

    def known(self, req: Integers) -> Integers:
        """Check that ``req`` are ids of requests of this run; returns them.

        Raises:
            AnalysisError: an event names a request that the workload lacks.
        """
        wrong = req[(req < 0) | (req >= len(self.requests))]
        if wrong.size:
            raise AnalysisError(
                "compute metrics", f"request {int(wrong[0])}", "is in the events but not asked for",
                NOT_ITS_OWN,
            )  # fmt: skip
        return req


def read_run(run_folder: Path) -> Run:
    """Read ``plan.json`` and ``workload.jsonl``.

    Raises:
        AnalysisError: one of them is missing or malformed.
    """
    path = run_folder / "plan.json"
    try:
        plan = Plan.model_validate_json(path.read_bytes())
    except OSError as cause:
        raise AnalysisError(
            "read plan", str(path), cause.strerror or str(cause), NOT_WHOLE
        ) from cause
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise AnalysisError("read plan", str(path), f"{key}: {first['msg']}", NOT_WHOLE) from fault
    if not plan.agents:
        raise AnalysisError("read plan", str(path), "the plan has no agents", NOT_WHOLE)
    requests = read_requests(run_folder / "workload.jsonl")
    for position, request in enumerate(requests):
        if request.id != position:
            raise AnalysisError(
                "read workload",
                f"{run_folder / 'workload.jsonl'}:{position + 1}",
                f"has id {request.id}, not {position}",
                NOT_WHOLE,
            )
    return Run(plan=plan, requests=requests)


def role_codes(run: Run, events: Events, role: Role) -> list[int]:
    """The codes in ``events`` of the agents of one role."""
    names = {agent.node for agent in run.agents(role)}
    return [code for code, name in enumerate(events.names) if name in names]


def measured(run: Run, events: Events) -> Flags:
    """Per request: whether it arrived inside the measuring window.

    An open loop's request arrives at its time in the workload, sent or not; a closed
    loop's when a user sends it.
    """
    begin_ns, end_ns = run.window.begin_ns, run.window.end_ns
    if run.closed_loop:
        at_ns = np.full(len(run.requests), -1, dtype=np.int64)
        sent = events[Kind.REQUEST_SENT]
        at_ns[run.known(sent.req)] = sent.t
    else:
        at_ns = np.array([request.at_ns for request in run.requests], dtype=np.int64)
    return (at_ns >= begin_ns) & (at_ns < end_ns)
