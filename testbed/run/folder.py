"""A run folder: made once, never reused, written in three phases.

Before the lab: scenario.yaml, plan.json, workload.jsonl, provenance.json. By the lab:
events/, logs/, ledger.jsonl, fidelity.json. After it: metrics.json, oracle.jsonl,
verdict.json, report.html. A crash in a later phase loses nothing of an earlier one.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable
from pathlib import Path

from testbed.contract.agent import Request
from testbed.contract.plan import Plan
from testbed.errors import UsageError


def default_folder(scenario: str, seed: int, root: Path = Path("runs")) -> Path:
    """``runs/<scenario>/<start>-s<seed>``; a running number keeps two starts in a second apart."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S")
    base = root / scenario / f"{stamp}-s{seed}"
    candidate, number = base, 1
    while candidate.exists():
        number += 1
        candidate = base.with_name(f"{base.name}-{number}")
    return candidate


def make_folder(path: Path) -> Path:
    """Makes the run folder.

    Raises:
        UsageError: something is there already, or it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir()
        for name in ("events", "logs"):
            (path / name).mkdir()
    except FileExistsError as error:
        raise UsageError(
            "make the run folder", str(path), "something is there already; a run is never reused",
            "choose another folder with --out",
        ) from error  # fmt: skip
    except OSError as error:
        raise UsageError(
            "make the run folder", str(path), error.strerror or str(error), "see --out"
        ) from error
    return path.resolve()


def write_inputs(
    run: Path,
    scenario_yaml: str,
    plan: Plan,
    requests: Iterable[Request],
    provenance: dict[str, object],
) -> None:
    """Phase one: everything that decides the run, before anything is touched."""
    (run / "scenario.yaml").write_text(scenario_yaml, encoding="utf-8")
    (run / "plan.json").write_text(plan.model_dump_json(indent=1), encoding="utf-8")
    with (run / "workload.jsonl").open("w", encoding="utf-8") as file:
        for request in requests:
            file.write(request.model_dump_json() + "\n")
    write_json(run / "provenance.json", provenance)


def write_json(path: Path, value: object) -> None:
    """Writes a JSON file atomically: whole, or not at all."""
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    staging.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    staging.replace(path)
