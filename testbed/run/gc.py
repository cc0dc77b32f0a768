"""What ``testbed gc`` does: walks the ledgers of dead owners and undoes what they had open.

Run folders are evidence: one without an end is marked, never removed. What another living
process has open is left alone, whoever wrote it down first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import HostError, TestbedError
from testbed.lab.hostledger import Kind
from testbed.lab.leftover import Entry, abandoned, ledgers, read_account, remove
from testbed.run.mark import mark_dead

_WORDS = {
    Kind.RUN: "run", Kind.FOLDER: "folder", Kind.BUILD: "kernel build", Kind.LOCK: "lock file",
    Kind.ENGINE: "private Engine",
}  # fmt: skip
_PARTS = {"events", "logs"}


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that was looked at; ``failed`` where it should have been undone and was not."""

    subject: str
    done: str
    failed: bool = False

    def __str__(self) -> str:
        return f"{self.subject}: {self.done}"


def collect(cache: Path, dry_run: bool = False) -> Iterator[Deed]:
    """Undoes what dead owners left, one deed at a time; ``dry_run`` says what it would do."""
    busy: set[Path] = set()
    dead: list[Path] = []
    for file in ledgers(cache):
        try:
            with abandoned(file) as gone:
                account = read_account(file) if file.exists() else None
        except (TestbedError, OSError) as error:
            yield Deed(f"ledger {file}", f"cannot be read: {error}", failed=True)
            continue
        if gone:
            dead.append(file)
        elif account is not None:
            busy.update(entry.path for entry in account.entries)
            yield from (Deed(_name(entry), "left alone, its owner lives")
                        for entry in account.entries)  # fmt: skip
    for file in dead:
        yield from _settle(file, busy, dry_run)


def _settle(file: Path, busy: set[Path], dry_run: bool) -> Iterator[Deed]:
    with abandoned(file) as gone:
        if not gone:
            return
        account = read_account(file)
        pid = 0 if account.owner is None else account.owner.owner
        settled = True
        for entry in reversed(account.entries):
            if entry.path in busy:
                yield Deed(_name(entry), "left alone, a living process uses it")
                continue
            try:
                yield Deed(_name(entry), _undo(entry, pid, dry_run))
            except OSError as error:
                settled = False
                yield Deed(_name(entry), f"cannot be undone: {error.strerror}", failed=True)
        if settled and not dry_run:
            file.unlink()


def refuse_failures(deeds: list[Deed]) -> None:
    """Raises HostError where something could not be undone."""
    failed = [deed for deed in deeds if deed.failed]
    if failed:
        raise HostError(
            "undo what was left", failed[0].subject, failed[0].done,
            "mend that and call testbed gc again; the ledger keeps what is left",
        )  # fmt: skip


def _undo(entry: Entry, owner: int, dry_run: bool) -> str:
    if entry.kind is Kind.RUN:
        return _end_run(entry.path, owner, dry_run)
    if dry_run:
        return "would be removed" if entry.path.exists() else "already gone"
    return remove(entry)


def _end_run(run: Path, owner: int, dry_run: bool) -> str:
    if not run.is_dir():
        return "already gone"
    if (run / "verdict.json").exists():
        return "has its end already"
    if not any((run / name).is_dir() for name in _PARTS) and any(run.iterdir()):
        return "left alone, it is no run folder"
    if dry_run:
        return "would be marked as interrupted"
    mark_dead(run, owner)
    return "marked as interrupted"


def _name(entry: Entry) -> str:
    return f"{_WORDS[entry.kind]} {entry.path}"
