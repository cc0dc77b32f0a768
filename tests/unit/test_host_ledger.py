"""The host's ledger: written before, gone after, and it knows its owner from another."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.lab.guest.core import reserved_core
from testbed.lab.hostledger import HostLedger, Kind, Owner, start_of
from testbed.lab.leftover import abandoned, ledgers, read_account

pytestmark = pytest.mark.unit


def test_a_thing_is_written_down_before_it_is_made(tmp_path: Path) -> None:
    with HostLedger(tmp_path) as ledger:
        ledger.acquire(Kind.FOLDER, tmp_path / "x")
        account = read_account(ledger.path)
        assert [(e.kind, e.path) for e in account.entries] == [(Kind.FOLDER, tmp_path / "x")]
        assert account.owner == Owner.this_process()
        assert not (tmp_path / "x").exists()
        ledger.release(Kind.FOLDER, tmp_path / "x")
        assert read_account(ledger.path).entries == ()


def test_a_ledger_with_nothing_open_is_gone_afterwards(tmp_path: Path) -> None:
    with HostLedger(tmp_path) as ledger, ledger.scratch(tmp_path, "work-") as folder:
        (folder / "file").write_text("x")
        assert len(ledgers(tmp_path)) == 1
    assert ledgers(tmp_path) == ()
    assert not folder.exists()


def test_a_ledger_with_something_open_stays(tmp_path: Path) -> None:
    with HostLedger(tmp_path) as ledger:
        ledger.acquire(Kind.RUN, tmp_path / "run")
    assert ledgers(tmp_path) == (ledger.path,)


def test_the_ledger_of_a_living_process_is_not_abandoned(tmp_path: Path) -> None:
    with HostLedger(tmp_path) as ledger:
        ledger.acquire(Kind.RUN, tmp_path / "run")
        with abandoned(ledger.path) as gone:
            assert not gone
    with abandoned(ledger.path) as gone:  # no lock any more, but the process is there
        assert not gone


@pytest.mark.parametrize("changed", [{"start": 1}, {"boot": "another"}, {"owner": 2**22 + 1}])
def test_a_process_id_that_came_again_is_another_owner(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    me = Owner.this_process()
    owner = {"owner": me.owner, "start": me.start, "boot": me.boot, **changed}
    file = tmp_path / "l.jsonl"
    file.write_text(json.dumps(owner) + "\n")
    with abandoned(file) as gone:
        assert gone


def test_a_process_that_nobody_waited_for_counts_as_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_of(child.pid) is None
    child.wait()


def test_a_torn_last_line_counts_for_nothing(tmp_path: Path) -> None:
    with HostLedger(tmp_path) as ledger:
        ledger.acquire(Kind.RUN, tmp_path / "run")
    with ledger.path.open("a") as stream:
        stream.write('{"action": "acquire", "kind": "folder", "na')
    assert [entry.kind for entry in read_account(ledger.path).entries] == [Kind.RUN]


def test_a_reserved_core_leaves_no_lock_file(tmp_path: Path) -> None:
    with HostLedger(tmp_path) as ledger:
        with reserved_core(tmp_path / "cores", ledger) as core:
            assert core in os.sched_getaffinity(0)
            assert [entry.kind for entry in read_account(ledger.path).entries] == [Kind.LOCK]
            assert len(list((tmp_path / "cores").iterdir())) == 1
        assert list((tmp_path / "cores").iterdir()) == []


@pytest.mark.parametrize("guests", [2, 3, 5])
def test_guests_spread_evenly_over_the_cores(tmp_path: Path, guests: int) -> None:
    allowed = os.sched_getaffinity(0)
    with HostLedger(tmp_path) as ledger, contextlib.ExitStack() as stack:
        taken = [
            stack.enter_context(reserved_core(tmp_path / "cores", ledger)) for _ in range(guests)
        ]
    counts = [taken.count(core) for core in allowed]
    assert max(counts) - min(counts) <= 1
