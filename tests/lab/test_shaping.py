"""Boots a guest and runs ``inside/shaping.py`` there: what the kernel makes of our shaping."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from testbed.lab.guest.boot import Kernel, Orders, boot, tail
from testbed.lab.guest.kernel.cache import cache_root, kernel_path

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

START_NS = 1_767_225_600 * 10**9
INSIDE = Path(__file__).with_name("inside") / "shaping.py"
PROGRAM = (
    "-m", "pytest", "-q", "--rootdir=/mnt/run", "-p", "no:cacheprovider",
    "--junitxml=/mnt/run/junit.xml", "/mnt/run/shaping.py",
)  # fmt: skip
FEWEST = 24


def test_the_kernel_does_what_the_compiler_meant(tmp_path: Path) -> None:
    linux = kernel_path()
    assert linux is not None
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    shutil.copyfile(INSIDE, run / "shaping.py")
    orders = Orders(run, PROGRAM, 1 << 30, 1, START_NS)
    outcome = boot(Kernel(linux, linux.with_name("entropy.so")), orders, cache_root())
    assert outcome.status == 0, tail(run / "logs" / "guest.log", 60)
    suite = ElementTree.parse(run / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert int(suite.attrib["tests"]) >= FEWEST
    assert suite.attrib["skipped"] == "0"
