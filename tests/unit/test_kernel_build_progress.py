"""Progress: every step on a terminal, a line now and then in a log."""

from __future__ import annotations

import io

from testbed.lab.guest.kernel.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_every_tenth_and_not_one_for_each_file() -> None:
    log = io.StringIO()
    line = ProgressLine(log)
    for i in range(1000):
        line(f"compiling file{i}.o", i / 1000)
    line("ready", 1.0)
    assert len(log.getvalue().splitlines()) == 11
    assert "100 %" in log.getvalue().splitlines()[-1]


def test_a_terminal_shows_one_line_that_is_rewritten() -> None:
    screen = Terminal()
    line = ProgressLine(screen)
    line("compiling a.o", 0.1)
    line("compiling b.o", 0.1)
    line.close()
    assert screen.getvalue().count("\r") == 2
    assert screen.getvalue().count("\n") == 1
