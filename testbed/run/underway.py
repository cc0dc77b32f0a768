"""Whether a run is still under way: its folder stands open in the ledger of a living process."""

from __future__ import annotations

from pathlib import Path

from testbed.errors import TestbedError, UsageError
from testbed.lab.hostledger import Kind
from testbed.lab.leftover import Entry, ledgers, read_account


def living_owner(run: Path, cache: Path) -> int | None:
    """The process that has the run open; None where there is none, or it is gone."""
    wanted = Entry(Kind.RUN, run.resolve())
    for file in ledgers(cache):
        try:
            account = read_account(file)
        except (TestbedError, OSError):  # removed meanwhile, or none of ours: it names nothing
            continue
        owner = account.owner
        if owner is not None and owner.lives and wanted in account.entries:
            return owner.owner
    return None


def refuse_underway(run: Path, cache: Path) -> None:
    """Raises UsageError while another process still writes the record."""
    owner = living_owner(run, cache)
    if owner is not None:
        raise UsageError(
            "analyse the run", str(run), f"it is still under way, process {owner} runs it",
            "wait for its end, or end that process",
        )  # fmt: skip
