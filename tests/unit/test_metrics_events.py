"""Event files that are damaged or contradict the run are refused by name and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.event import Kind
from testbed.errors import AnalysisError
from testbed.metrics import compute, read_events
from tests.fakes.hand_run import Told, story, told, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", story())


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (told(1, "c1", Kind.REQUEST_SENT, req=99), "request 99"),
        (told(1, "p1", Kind.TRANSFER_ACKED, req=3, peer="md1"), "never acquired"),
        (told(1, "x9", Kind.POOL_QUEUED, req=3, peer="md1"), "no links between|plan lacks"),
    ],
)
def test_events_that_contradict_the_run_are_refused(
    tmp_path: Path, extra: Told, reason: str
) -> None:
    folder = write_run(tmp_path / "run", [*story(), extra])
    with pytest.raises(AnalysisError, match=reason):
        compute(folder)
    assert not (folder / "metrics.json").exists()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "no JSON object"),
        ('{"t":1,"node":"c1","seq":0,"kind":"tokens","size":0}', "unknown kind 'tokens'"),
        ('{"t":1,"node":"c1","seq":0,"kind":"barrier"}', "'size' is None"),
        ('{"t":1.5,"node":"c1","seq":0,"kind":"barrier","size":0}', "'t' is 1.5"),
        ('{"t":true,"node":"c1","seq":0,"kind":"barrier","size":0}', "'t' is True"),
        ('{"t":1,"node":7,"seq":0,"kind":"barrier","size":0}', "'node' is 7"),
        ('{"t":1,"node":"c1","seq":0,"kind":"token","size":0,"req":1}', "'pos' is None"),
        ('{"t":99999999999999999999,"node":"c","seq":0,"kind":"barrier","size":0}', "64 bits"),
    ],
)
def test_a_wrong_event_line_is_named_with_file_and_line(run: Path, line: str, reason: str) -> None:
    path = run / "events" / "zz.jsonl"
    path.write_text('{"t":1,"node":"zz","seq":0,"kind":"barrier","size":0}\n' + line + "\n")
    with pytest.raises(AnalysisError, match=rf"zz\.jsonl:2.*{reason}"):
        read_events(run)


def test_a_folder_without_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match="holds no"):
        read_events(tmp_path)
