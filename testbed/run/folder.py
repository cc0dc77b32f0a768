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
from itertools import count
from pathlib import Path

from testbed.contract.agent import Request
from testbed.contract.plan import Plan
from testbed.errors import UsageError
from testbed.lab.hostledger import HostLedger, Kind


def make_default_folder(
    scenario: str, seed: int, root: Path = Path("runs"), ledger: HostLedger | None = None
) -> Path:
    """Makes ``runs/<scenario>/<start>-s<seed>``; a number keeps two starts in a second apart.

    Args:
        ledger: where the folder is written down before it is made; see ``make_folder``.

    Raises:
        UsageError: it cannot be made.
    """
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S")
    for number in count(1):
        name = f"{stamp}-s{seed}" if number == 1 else f"{stamp}-s{seed}-{number}"
        made = _make(root / scenario / name, ledger)
        if made is not None:
            return made
    raise AssertionError  # count never ends


def make_folder(path: Path, ledger: HostLedger | None = None) -> Path:
    """Makes the run folder.

    Args:
        ledger: where it is written down before it is made; the caller releases it when the
            run has its end mark. None where nobody asks how the run ended.

    Raises:
        UsageError: something is there already, or it cannot be made.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "make the run folder", repr(str(path)), "its path is not UTF-8",
            "choose another folder with --out",
        ) from error  # fmt: skip
    made = _make(path, ledger)
    if made is None:
        raise _taken(path)
    return made


def refuse_taken(path: Path) -> None:
    """Refuses a place that is taken, before a machine is asked for anything.

    Raises:
        UsageError: something is there already.
    """
    if os.path.lexists(path):
        raise _taken(path)


def _taken(path: Path) -> UsageError:
    return UsageError(
        "make the run folder", str(path), "something is there already; a run is never reused",
        "choose another folder with --out",
    )  # fmt: skip


def _make(path: Path, ledger: HostLedger | None) -> Path | None:
    """The folder with its parts, or None where its place is taken."""
    made = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path = path.parent.resolve() / path.name
        if ledger is not None:
            ledger.acquire(Kind.RUN, path)
        path.mkdir()
        made = True
        for name in ("events", "logs"):
            (path / name).mkdir()
    except FileExistsError as error:
        if Path(error.filename) != path:
            raise _refusal(path, error) from error
        return None
    except OSError as error:
        raise _refusal(path, error) from error
    finally:
        if ledger is not None and not made:
            ledger.release(Kind.RUN, path)
    return path


def _refusal(path: Path, error: OSError) -> UsageError:
    return UsageError(
        "make the run folder", str(path),
        f"{error.filename or path}: {error.strerror or error}",
        "choose a folder that you may write to with --out",
    )  # fmt: skip


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
