"""Whether a run folder that is there already is the run that is wanted.

A long study is interrupted; its finished runs need not be repeated. One is taken over only
if it would come out the same: same plan, requests and scenario, same kernel, same code in
the guest. Host facts (estimates, guest memory) leave no trace in a timeline and may differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from testbed.checks.verdict import read_verdict
from testbed.contract.plan import Plan
from testbed.errors import TestbedError, UsageError
from testbed.lab.guest.snapshot import code_digest, source_files
from testbed.run.again import analyse_again
from testbed.run.execute import Finished, lab_kernel
from testbed.run.folder import write_json
from testbed.run.mark import read_mark
from testbed.run.prepare import Prepared
from testbed.run.provenance import file_digest

_AFTERWARDS = ("checks", "cli", "host", "metrics", "oracle", "report", "reproduce", "soak")
"""Rooms of the orchestrator that only act outside the guest, or after it."""
_HOST_FACTS = ("wall_s", "guest_memory_bytes", "host_memory_bytes", "disk_bytes")
_STAMP = "guest-code.json"


def guest_code() -> str:
    """SHA-256 over the code that can shape a timeline."""
    digest = hashlib.sha256()
    for name, path in source_files():
        parts = name.split("/")
        if parts[0] == "testbed" and parts[1] in _AFTERWARDS:
            continue
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def stamp() -> dict[str, str]:
    """What all runs of one folder have in common.

    Raises:
        HostError: there is no lab kernel.
    """
    return {"guest_code": guest_code(), "kernel": file_digest(lab_kernel().linux)}


def claim_folder(out: Path, own: dict[str, str]) -> None:
    """Makes the folder of a study, or checks that an earlier start of it has the same stamp.

    Raises:
        UsageError: its runs are of other code or another kernel, or it holds something else.
    """
    path = out / _STAMP
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(
                "start the study", str(out), "it is no folder of a study, and not empty",
                "name a new folder with --out",
            )  # fmt: skip
        write_json(path, own)
        return
    try:
        known: object = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        known = None
    if known != own:
        raise UsageError(
            "go on with the study", str(out),
            "its runs were made by other code or another kernel",
            "choose another folder with --out",
        )  # fmt: skip


def place_of(out: Path, label: str, prepared: Prepared) -> tuple[Path, bool]:
    """Folder of a run, and whether it is there and finished.

    A run that was interrupted stays as it is, as evidence; the next one gets a number. One
    that was killed before its inputs were written may be any run's.

    Raises:
        UsageError: a folder of that name holds another run.
    """
    places = _places(out, label)
    while (folder := next(places)).exists():
        inputs = _inputs(folder)
        if inputs is None:
            continue
        if inputs != _wanted(prepared):
            raise UsageError(
                "go on with the study", str(folder), "it holds a run of another plan",
                "choose another folder with --out",
            )  # fmt: skip
        if read_mark(folder) is None and (folder / "metrics.json").is_file():
            return folder, True
    return folder, False


def free_place(out: Path, label: str) -> Path:
    """A folder for the run beside those that are there."""
    return next(folder for folder in _places(out, label) if not folder.exists())


def _places(out: Path, label: str) -> Iterator[Path]:
    """Folders that a run may have, in the order in which they are taken."""
    yield out / label
    for number in count(2):
        yield out / f"{label}-{number}"


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What decides a run; two with equal inputs have one timeline."""

    plan: Plan
    scenario: str
    requests: str


def _inputs(folder: Path) -> _Inputs | None:
    """Those of a run folder; None where they were never written to their end."""
    if not (folder / "provenance.json").is_file():  # the last of them
        return None
    try:
        plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
        scenario = (folder / "scenario.yaml").read_text(encoding="utf-8")
        requests = (folder / "workload.jsonl").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return _Inputs(_lasting(plan), scenario, requests)


def _wanted(prepared: Prepared) -> _Inputs:
    requests = "".join(request.model_dump_json() + "\n" for request in prepared.requests)
    return _Inputs(_lasting(prepared.plan), prepared.scenario.resolved_yaml(), requests)


def take_over(folder: Path) -> Finished | None:
    """A finished run as it was judged; anew where the analysis is other code by now.

    None where its record is unusable.
    """
    try:
        if _judged_by(folder) == code_digest():
            tree = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
            return Finished(folder, read_verdict(folder / "verdict.json"), tree)
        return analyse_again(folder)
    except (TestbedError, ValueError, OSError):
        return None


def _judged_by(folder: Path) -> object:
    kept: object = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    return kept.get("code_sha256") if isinstance(kept, dict) else None


def _lasting(plan: Plan) -> Plan:
    guest = plan.guest.model_copy(update={"memory_bytes": 2**30})
    estimate = plan.estimate.model_copy(update=dict.fromkeys(_HOST_FACTS, 0))
    return plan.model_copy(update={"guest": guest, "estimate": estimate})
