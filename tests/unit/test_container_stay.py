"""A container's program stays until it is stopped, and then ends at once."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

STAYING = """
import sys, threading
from testbed.lab.container.stay import end_when_stopped, stay
end_when_stopped()
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("here", flush=True)
{work}
sys.exit(0)
"""


@pytest.mark.parametrize("work", ["stay()", "sys.stdin.read()"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_it_is_stopped(work: str, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STAYING.format(work=work)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        assert program.stdout.readline() == "here\n"
        program.send_signal(number)
        assert program.wait(20) == 0
