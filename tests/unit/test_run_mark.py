"""The mark of a run without an end: written whatever ended it, kept by a later analysis."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from testbed.checks import CHECKS, Status, judge
from testbed.errors import ExitStatus, HostError, LabError, UsageError
from testbed.fidelity.calibrate import Effort
from testbed.lab.guest.boot import Kernel
from testbed.lab.guest.kernel.cache import cache_root
from testbed.lab.hostledger import HostLedger, Kind
from testbed.lab.leftover import ledgers
from testbed.metrics import compute
from testbed.run import calibrate as calibration
from testbed.run.again import analyse_again
from testbed.run.calibrate import calibrate, prepare_calibration
from testbed.run.folder import make_folder
from testbed.run.mark import TookPlace, marked_unless_finished, read_mark
from testbed.run.underway import living_owner
from tests.fakes.run_folder import FakeRun, write_run_folder

pytestmark = pytest.mark.unit


class StrangeError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyboardInterrupt(), "interrupted by Ctrl-C or a signal"),
        (SystemExit(143), "interrupted by Ctrl-C or a signal"),
        (LabError("run", "x", "the guest died"), "the guest died"),
        (StrangeError("odd"), "StrangeError: odd"),
        (OSError(28, "No space left on device"), "No space left"),
    ],
)
def test_whatever_ends_a_run_early_leaves_the_mark(
    tmp_path: Path, error: BaseException, words: str
) -> None:
    with HostLedger(tmp_path) as ledger:
        run = make_folder(tmp_path / "run", ledger)
        with pytest.raises(type(error)), marked_unless_finished(run, ledger):
            raise error
    assert words in (read_mark(run) or "")
    assert ledgers(tmp_path) == ()


def test_a_run_that_ended_has_no_mark(tmp_path: Path) -> None:
    with HostLedger(tmp_path) as ledger:
        run = make_folder(tmp_path / "run", ledger)
        with marked_unless_finished(run, ledger):
            pass
    assert read_mark(run) is None
    assert ledgers(tmp_path) == ()


def test_a_mark_that_cannot_be_written_hides_nothing_and_stays_in_the_ledger(
    tmp_path: Path,
) -> None:
    with HostLedger(tmp_path) as ledger:
        run = make_folder(tmp_path / "run", ledger)
        shutil.rmtree(run)
        with pytest.raises(HostError, match="gone"), marked_unless_finished(run, ledger):
            raise HostError("run", "x", "the folder is gone")
    assert ledgers(tmp_path) == (ledger.path,)


def test_a_mark_outlives_an_analysis_of_half_a_record(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run_folder(run, FakeRun())
    lab = run / "events" / "lab.jsonl"
    lab.write_text("".join(lab.read_text().splitlines(keepends=True)[:-1]))
    compute(run)
    verdict = judge(run, None, (TookPlace("interrupted: so it was"), *CHECKS))
    assert verdict.verdict is Status.INVALID
    assert read_mark(run) == "interrupted: so it was"


def test_a_run_interrupted_while_it_was_analysed_loses_its_mark(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run_folder(run, FakeRun())
    compute(run)
    judge(run, None, (TookPlace("interrupted"), *CHECKS))
    assert read_mark(run) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), LabError("boot", "x", "died"), OSError(5)])
def test_an_interrupted_calibration_carries_the_same_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def ended(*_: object) -> None:
        raise error

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(calibration, "lab_kernel", lambda: Kernel(Path(__file__), Path(__file__)))
    monkeypatch.setattr(calibration, "boot", ended)
    prepared = prepare_calibration("wan-10g", Effort.QUICK)
    with pytest.raises(type(error)):
        calibrate(prepared, tmp_path / "run")
    assert read_mark(tmp_path / "run") is not None
    with pytest.raises(UsageError, match="holds a calibration") as caught:
        analyse_again(tmp_path / "run")
    assert caught.value.exit_status is ExitStatus.USAGE


def test_a_run_under_way_is_not_analysed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with HostLedger(cache_root()) as ledger:
        run = make_folder(tmp_path / "run", ledger)
        with pytest.raises(UsageError, match="still under way, process") as caught:
            analyse_again(run)
        assert caught.value.exit_status is ExitStatus.USAGE
        assert not (run / "verdict.json").exists()
        assert living_owner(tmp_path / "other", cache_root()) is None
        ledger.release(Kind.RUN, run)
        assert living_owner(run, cache_root()) is None


def test_a_run_of_a_dead_process_is_not_under_way(tmp_path: Path) -> None:
    with HostLedger(tmp_path) as ledger:
        run = make_folder(tmp_path / "run", ledger)
        first, *rest = ledger.path.read_text().splitlines()
        dead = {**json.loads(first), "start": 1}
        ledger.path.write_text("".join(f"{line}\n" for line in (json.dumps(dead), *rest)))
        assert living_owner(run, tmp_path) is None
        ledger.release(Kind.RUN, run)
