"""The case before the judge: everything a check may look at, read from one run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from testbed.checks.fault import brief
from testbed.checks.fidelity_row import FidelityRow, read_fidelity
from testbed.checks.history import History, read_history
from testbed.checks.line import lines
from testbed.checks.metrics_file import MetricsFile, read_metrics
from testbed.checks.planned_ends import killed_at
from testbed.contract.agent import Request, Window
from testbed.contract.attempt import request_of
from testbed.contract.event import Kind
from testbed.contract.plan import Plan
from testbed.errors import AnalysisError

NOT_WHOLE = "is this a run folder, and is it whole? run the scenario again"


@dataclass(frozen=True, slots=True)
class Reference:
    """One request's tokens from one uninterrupted engine.

    ``gaps`` holds the distance between the two largest logits at each position, in
    logits; it says how easily rounding could have turned the choice.
    """

    tokens: tuple[int, ...]
    gaps: tuple[float, ...]
    text: str | None = None
    """The answer in words, where the model has words."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run as it was recorded. None stands for a file that does not exist."""

    plan: Plan
    requests: Mapping[int, Request]
    history: History
    fidelity: tuple[FidelityRow, ...] | None = None
    reference: Mapping[int, Reference] | None = None
    metrics: MetricsFile | None = None

    @property
    def window(self) -> Window:
        """Phases of the run; the same for all of its agents."""
        return self.plan.agents[0].window

    def asked_by(self, job: int) -> Request | None:
        """The request that a job serves; None where the workload has none."""
        return self.requests.get(request_of(job))

    @property
    def closed_loop(self) -> bool:
        """Whether users wait for answers; then not every line of the workload is sent."""
        return any(agent.closed_loop is not None for agent in self.plan.agents)


def read_case(folder: Path) -> Case:
    """Read a run folder. Raises AnalysisError where a needed file is missing or malformed."""
    plan = read_plan(folder)
    if not plan.agents:
        raise AnalysisError("read plan", str(folder / "plan.json"), "it has no agents", NOT_WHOLE)
    reference = folder / "reference.jsonl"
    fidelity = folder / "fidelity.json"
    metrics = folder / "metrics.json"
    history = read_history(folder / "events")
    history.lost |= killed_at(plan, history.reached_ns).keys() - _stopped(history)
    return Case(
        plan=plan,
        requests=read_requests(folder),
        history=history,
        fidelity=read_fidelity(fidelity) if fidelity.exists() else None,
        reference=_read_reference(reference) if reference.exists() else None,
        metrics=read_metrics(metrics) if metrics.exists() else None,
    )


def _stopped(history: History) -> set[str]:
    """Whoever told of its own end: a fault that was to kill it came too late."""
    return {moment.node for moment in history.moments if moment.kind is Kind.AGENT_STOP}


def read_plan(folder: Path) -> Plan:
    """Read ``plan.json`` of a run folder."""
    path = folder / "plan.json"
    try:
        return Plan.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise AnalysisError("read plan", str(path), brief(error), NOT_WHOLE) from error


def read_requests(folder: Path) -> dict[int, Request]:
    """Read ``workload.jsonl`` of a run folder, by request id."""
    path = folder / "workload.jsonl"
    requests: dict[int, Request] = {}
    number = 0
    try:
        with path.open("rb") as stream:
            for number, text in enumerate(stream, start=1):
                request = Request.model_validate_json(text)
                if request.id in requests:
                    raise AnalysisError(
                        "read workload", f"{path}:{number}", f"request {request.id} again",
                        NOT_WHOLE,
                    )  # fmt: skip
                requests[request.id] = request
    except OSError as error:
        raise AnalysisError("read workload", str(path), brief(error), NOT_WHOLE) from error
    except ValidationError as error:
        raise AnalysisError("read workload", f"{path}:{number}", brief(error), NOT_WHOLE) from error
    return requests


def _read_reference(path: Path) -> dict[int, Reference]:
    reference: dict[int, Reference] = {}
    for line in lines(path):
        tokens, gaps = line.integers("tokens"), line.numbers("gaps")
        if len(tokens) != len(gaps):
            raise line.fault(f"{len(tokens)} tokens but {len(gaps)} gaps")
        reference[line.integer("req")] = Reference(tokens, gaps, line.text_or_none("text"))
    return reference
