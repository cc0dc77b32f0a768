"""Containers that meet in a folder: nothing half said, nobody waits for ever."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.contract.meeting import BARRIER, Meeting, Said, drain
from testbed.errors import LabError

pytestmark = pytest.mark.unit

FAR_NS = 20 * 10**9


def opened(run: Path) -> Meeting:
    meeting = Meeting(run)
    meeting.open()
    return meeting


def test_what_is_said_is_heard(tmp_path: Path) -> None:
    meeting = opened(tmp_path)
    assert meeting.heard(Said.READY, "p1") is None
    meeting.say(Said.READY, "p1")
    meeting.say(Said.ENDED, "p1", "3")
    assert meeting.heard(Said.READY, "p1") == ""
    assert meeting.heard(Said.ENDED, "p1") == "3"
    assert meeting.names(Said.READY) == {"p1"}
    assert meeting.names(Said.BUILT) == frozenset()


def test_what_is_said_anew_has_another_number(tmp_path: Path) -> None:
    meeting = opened(tmp_path)
    assert meeting.number(Said.BUILT, "wan1") is None
    seen = set()
    for _ in range(3):
        before = meeting.number(Said.BUILT, "wan1")
        meeting.say(Said.BUILT, "wan1")
        assert meeting.number(Said.BUILT, "wan1") != before
        seen.add(meeting.number(Said.BUILT, "wan1"))
    assert None not in seen


def test_who_waits_is_woken_by_another_process(tmp_path: Path) -> None:
    meeting = opened(tmp_path)
    program = (
        "import sys; from pathlib import Path; from testbed.contract.meeting import Meeting, Said;"
        "Meeting(Path(sys.argv[1])).say(Said.WORD, 'barrier', '17')"
    )
    other = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    assert meeting.wait(Said.WORD, BARRIER, time.time_ns() + FAR_NS) == "17"
    assert other.wait() == 0


def test_what_never_comes_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="word/barrier"):
        opened(tmp_path).wait(Said.WORD, BARRIER, time.time_ns() + 10**7)


def test_a_half_written_file_is_nobody(tmp_path: Path) -> None:
    meeting = opened(tmp_path)
    (meeting.folder / "ready" / ".p1").write_text("")
    assert meeting.names(Said.READY) == frozenset()


def test_news_wakes_and_is_forgotten(tmp_path: Path) -> None:
    meeting = opened(tmp_path)
    with meeting.news(Said.READY) as news:
        began = time.monotonic()
        drain(news, 0.01)
        meeting.say(Said.READY, "p1")
        drain(news, 10)
        assert time.monotonic() - began < 5
        drain(news, 0)
