"""From a run folder to ``metrics.json``: a pure function of plan, workload and events.

It can be redone on any machine at any time; what it writes (``metrics.json`` and
``oracle.jsonl``) is replaced whole. Raw events are never changed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypeAlias, cast

from pydantic import ValidationError

from testbed.metrics.attribution import attribute
from testbed.metrics.cache import cache_hits
from testbed.metrics.events import Events, read_events
from testbed.metrics.goodput import benefit_cost, goodput, service_level
from testbed.metrics.handoff import handoffs, relay_share
from testbed.metrics.ideal import ideal_outcomes, oracle
from testbed.metrics.link import link_use
from testbed.metrics.offered import offered_bytes
from testbed.metrics.outcome import completed, outcomes
from testbed.metrics.pool import pool_use
from testbed.metrics.record import Metrics
from testbed.metrics.recovery import fault_effects
from testbed.metrics.run import Flags, Run, measured, read_run
from testbed.metrics.serving import serving
from testbed.metrics.timeline import timeline_sha256
from testbed.metrics.token import answers_of, token_figures
from testbed.metrics.transfer import acked_transfers, transfers
from testbed.oracle import Outcome, write_outcomes

Json: TypeAlias = "int | float | str | bool | list[Json] | dict[str, Json] | None"


def compute(
    run_folder: Path, wall_s: float | None = None, virtual_s: float | None = None
) -> dict[str, Json]:
    """Compute and write ``metrics.json`` and ``oracle.jsonl``; returns the former's content.

    Args:
        wall_s: wall time of the run; None keeps what an earlier ``metrics.json`` says.
        virtual_s: time that passed on the lab's clock; None likewise.

    Raises:
        AnalysisError: a file of the run is missing, malformed or contradicts another.
    """
    path = run_folder / "metrics.json"
    if wall_s is None or virtual_s is None:
        earlier = _earlier_times(path)
        wall_s = earlier[0] if wall_s is None else wall_s
        virtual_s = earlier[1] if virtual_s is None else virtual_s
    run, events = read_run(run_folder), read_events(run_folder)
    ideal = ideal_outcomes(run, events)
    metrics = figures(run, events, ideal, wall_s, virtual_s)
    write_outcomes(run_folder / "oracle.jsonl", ideal)
    draft = path.with_name(path.name + ".part")
    draft.write_text(metrics.model_dump_json(indent=2) + "\n", encoding="utf-8")
    os.replace(draft, path)
    return cast("dict[str, Json]", json.loads(metrics.model_dump_json()))


def figures(
    run: Run,
    events: Events,
    ideal: tuple[Outcome, ...],
    wall_s: float | None = None,
    virtual_s: float | None = None,
) -> Metrics:
    """All metrics of a run; touches no file."""
    inside = measured(run, events)
    done = completed(run, events)
    acked = acked_transfers(run, events)
    answers = answers_of(run, events, inside, done)
    ttft, tpot, gap, stall = token_figures(answers)
    good = goodput(run, answers)
    why = attribute(run, events, inside, stall.threshold_s or 0.0)
    return Metrics(
        requests=outcomes(run, events, inside),
        transfer=transfers(run, events, acked, inside),
        pool=pool_use(run, events, acked, inside),
        ttft=ttft,
        tpot=tpot,
        gap=gap,
        stall=stall,
        handoff=handoffs(run, events, inside),
        rld=relay_share(run, events, inside),
        cache=cache_hits(run, events, inside),
        serving=serving(run, events, acked, inside),
        goodput_rps=good,
        sla=service_level(run, answers, int(inside.sum())),
        bcr=benefit_cost(run.plan.cost, good),
        link=link_use(run, events),
        faults=fault_effects(run, events, acked),
        causes=why.causes,
        stalls=why.stalls,
        slow_first_tokens=why.first_tokens,
        slow_transfers=why.transfers,
        oracle=oracle(ideal, inside),
        offered_load=_offered_load(run, events, inside),
        timeline_sha256=timeline_sha256(events) if run.plan.clock == "virtual" else None,
        wall_s=wall_s,
        virtual_s=virtual_s,
    )


def _offered_load(run: Run, events: Events, inside: Flags) -> float | None:
    if run.closed_loop or run.capacity_bps <= 0:
        return None
    return offered_bytes(run, events, inside) * 8 / (run.capacity_bps * run.measure_s)


def _earlier_times(path: Path) -> tuple[float | None, float | None]:
    """Wall and virtual seconds of an earlier analysis; (None, None) where there is none."""
    try:
        earlier = Metrics.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None, None
    return earlier.wall_s, earlier.virtual_s
