"""A run that stood still is, to the nanosecond, one that did not.

At both times nothing of ``pdd-hello`` is due at that very moment; what is comes up to 2 us later.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.contract.breakpoint import Picture, go_on, picture_path, standing
from tests.lab.conftest import Command, environment

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]


def test_a_run_that_stood_has_the_timeline_of_one_that_did_not(
    testbed: Command, tmp_path: Path
) -> None:
    run = tmp_path / "stood"
    stood = subprocess.Popen(
        [
            sys.executable, "-m", "testbed", "run", "pdd-hello", "--json", "--out", str(run),
            "--set", "breakpoints=[1600 ms, 3200 ms]",
        ],
        cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    pictures: list[Picture] = []
    patience = time.monotonic() + 300
    while stood.poll() is None:
        assert time.monotonic() < patience
        picture = standing(run)
        if picture is not None:
            pictures.append(picture)
            go_on(run)
    out, err = stood.communicate()
    assert stood.returncode == 0, out + err
    assert [picture.at_ns for picture in pictures] == [1_600_000_000, 3_200_000_000]
    assert all(picture_path(run, picture.at_ns).is_file() for picture in pictures)
    assert {link.link for link in pictures[0].links} >= {"wan1"}
    states = {socket.state for each in pictures[1].sockets.values() for socket in each}
    assert {"established", "listen"} <= states
    plain = testbed("run", "pdd-hello", "--json")
    assert plain.status == 0, plain.out + plain.err
    assert f'"timeline_sha256": "{plain.metrics["timeline_sha256"]}"' in out
