"""What a report needs of one run, reduced from its folder.

A study shows several runs on one page; each is read, reduced to this value and let go,
so that memory does not grow with their number of events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from testbed.checks.case import NOT_WHOLE, Case, read_case
from testbed.checks.fidelity_row import FidelityRow
from testbed.checks.findings import Transferred, transferred
from testbed.checks.littles_law import Occupancy, occupancy
from testbed.checks.metrics_file import MetricsFile
from testbed.checks.verdict import Verdict, read_verdict
from testbed.contract.agent import Window
from testbed.contract.plan import Plan
from testbed.contract.pool import Pool
from testbed.contract.role import Role
from testbed.errors import AnalysisError
from testbed.metrics.serving_record import Serving
from testbed.oracle.record import read_outcomes
from testbed.oracle.sharing import Outcome
from testbed.report.series import LegSeries, PoolSeries, leg_series, pool_series


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run, ready to be drawn. None stands for a file that does not exist."""

    folder: Path
    plan: Plan
    window: Window
    transfers: tuple[Transferred, ...]
    pool_size: int | None
    """Connections of all pairs together; None where a pool has no bound."""
    pool: PoolSeries
    legs: tuple[LegSeries, ...]
    law: Occupancy
    fidelity: tuple[FidelityRow, ...]
    provenance: tuple[tuple[str, str], ...]
    scenario_text: str
    answers: tuple[tuple[int, str], ...]
    """The first answers in words (request, text), equal to the reference; empty for a
    model without words."""
    metrics: MetricsFile | None = None
    serving: Serving | None = None
    """The figures of the serving plane; None for a run without one."""
    oracle: tuple[Outcome, ...] | None = None
    verdict: Verdict | None = None

    def metric(self, name: str) -> float | None:
        """Return a metric; None where it is null, absent or nothing was computed."""
        if self.metrics is None or name not in self.metrics:
            return None
        return self.metrics.number(name)


def summarize(folder: Path) -> RunSummary:
    """Read and reduce a run folder. Raises AnalysisError where its record is unusable."""
    return reduce_case(folder, read_case(folder))


def reduce_case(folder: Path, case: Case) -> RunSummary:
    """Reduce a case that was read already."""
    case = _main_path(case)
    pools = {agent.node: agent.pool for agent in case.plan.agents}
    pairs = {(s.node, s.peer) for s in case.history.steps if s.busy >= 0 and s.peer}
    oracle, verdict = folder / "oracle.jsonl", folder / "verdict.json"
    rows = transferred(case)
    return RunSummary(
        folder=folder,
        plan=case.plan,
        window=case.window,
        transfers=rows,
        pool_size=_size([pools[sender] for sender, _ in pairs if sender in pools]),
        pool=pool_series(case.history, case.window.deadline_ns),
        legs=_legs(case),
        law=occupancy(case),
        fidelity=case.fidelity or (),
        provenance=(
            *_provenance(folder / "provenance.json"),
            *((f"headroom {name}", value) for name, value in _provenance(folder / "headroom.json")),
        ),
        scenario_text=_text(folder / "scenario.yaml"),
        answers=_answers(case),
        metrics=case.metrics,
        serving=_serving(case.metrics),
        oracle=_oracle(oracle, {row.req for row in rows}) if oracle.exists() else None,
        verdict=read_verdict(verdict) if verdict.exists() else None,
    )


def _size(pools: Sequence[Pool]) -> int | None:
    sizes = [pool.size for pool in pools if pool.size is not None]
    return sum(sizes) if len(sizes) == len(pools) else None


def _main_path(case: Case) -> Case:
    """The case without transfers to RLD: pictures of transfers and pools are of the WAN."""
    relays = {agent.node for agent in case.plan.agents if agent.role is Role.RELAY}
    if not relays:
        return case
    steps = [
        step for step in case.history.steps if step.peer not in relays and step.node not in relays
    ]
    return replace(case, history=replace(case.history, steps=steps))


def _serving(metrics: MetricsFile | None) -> Serving | None:
    tree = metrics.tree.get("serving") if metrics is not None else None
    if metrics is None or tree is None:
        return None
    try:
        return Serving.model_validate(tree)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        key = ".".join(str(part) for part in ("serving", *first["loc"]))
        raise AnalysisError(
            "read metrics", str(metrics.path), f"{key}: {first['msg']}",
            "compute it again: testbed report FOLDER",
        ) from fault  # fmt: skip


_ANSWERS_MAX = 3


def _answers(case: Case) -> tuple[tuple[int, str], ...]:
    answers: list[tuple[int, str]] = []
    for req, reference in sorted((case.reference or {}).items()):
        story = case.history.stories.get(req)
        equal = story is not None and story.done and story.done[0][1] == reference.tokens
        if reference.text is not None and equal:
            answers.append((req, reference.text))
    return tuple(answers[:_ANSWERS_MAX])


def _legs(case: Case) -> tuple[LegSeries, ...]:
    found = (
        leg_series(case.history.samples, link.name, "forward", link.forward.rate_bps)
        for link in case.plan.emulated.links
        if link.kind == "wan"
    )
    return tuple(leg for leg in found if leg is not None)


def _oracle(path: Path, wanted: set[int]) -> tuple[Outcome, ...]:
    """Read the oracle's transfers of the given requests (those that the window counts)."""
    return tuple(outcome for outcome in read_outcomes(path) if outcome.req in wanted)


def _provenance(path: Path) -> tuple[tuple[str, str], ...]:
    if not path.exists():
        return ()
    try:
        content: object = json.loads(path.read_bytes())
    except ValueError as error:
        raise AnalysisError("read provenance", str(path), str(error), NOT_WHOLE) from error
    if not isinstance(content, dict):
        raise AnalysisError("read provenance", str(path), "not a JSON object", NOT_WHOLE)
    return tuple(_flat("", content))


def _flat(prefix: str, tree: Mapping[str, object]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            pairs.extend(_flat(f"{prefix}{key}.", value))
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            pairs.append((f"{prefix}{key}", text))
    return pairs


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
