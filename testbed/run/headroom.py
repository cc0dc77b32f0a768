"""Refuses a run that this machine cannot carry in real time, before any agent starts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from testbed.contract.demand import Costs, Demand
from testbed.contract.plan import Plan
from testbed.errors import HostError
from testbed.fidelity.headroom import measure_costs
from testbed.lab.protocol import Lab
from testbed.plan.headroom import MOST, Headroom, headroom

FILE = "headroom.json"


def refuse_beyond_headroom(plan: Plan, demand: Demand, run: Path, lab: Lab) -> None:
    """Measures the built lab, writes ``headroom.json``, compares.

    Raises:
        HostError: the plan asks for more; names the scale that fits.
    """
    refuse_beyond(plan, demand, measure_costs(plan.network, lab.paths()), run)


def refuse_beyond(
    plan: Plan, demand: Demand, costs: Costs, run: Path,
    remedy: Callable[[Headroom], str] | None = None,
) -> None:  # fmt: skip
    """Writes ``headroom.json``, and compares what was measured.

    Args:
        remedy: what to do, where that is not an option of ``testbed run``.

    Raises:
        HostError: the plan asks for more; names the scale that fits.
    """
    found = headroom(demand, costs, plan.scale)
    record = {
        "superframe_s": costs.superframe_s, "frame_s": costs.frame_s,
        "packets": found.packets, "computing": found.computing, "most": MOST,
        "largest_size": found.size, "least_slow": found.slow,
    }  # fmt: skip
    (run / FILE).write_text(json.dumps(record, indent=1), encoding="utf-8")
    if not found.fits:
        raise HostError(
            "carry the run in real time", plan.scenario,
            f"it needs {found.needed:.2f} of a core at its peak ({found.packets:.2f} for packets, "
            f"{found.computing:.2f} for computing), and {MOST} is what may be used",
            _fitting(found, plan.scale.size) if remedy is None else remedy(found),
        )  # fmt: skip


def _fitting(found: Headroom, size: float) -> str:
    """The scales that fit, rounded to the safe side."""
    slow = f"--set real_time.slow={math.ceil(found.slow * 10) / 10:g}"
    if found.size is None or found.size >= size:
        return f"use {slow}, or --clock virtual"
    share = math.floor(found.size * 1e4) / 100
    return f'use {slow}, or --set real_time.size="{share:g} %" at the same pace, or --clock virtual'
