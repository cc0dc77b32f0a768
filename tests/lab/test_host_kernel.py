"""A lab on the host's own kernel: refused where the kernel cannot shape, and gone at its end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from testbed.lab.guest.boot import Orders, boot
from testbed.lab.guest.kernel.cache import cache_root
from testbed.lab.host.refusal import has_netem, read_host_kernel
from testbed.run.prepare import prepare
from tests.lab.conftest import Command

pytestmark = pytest.mark.lab

INSIDE = Path(__file__).with_name("inside")


@pytest.mark.skipif(has_netem() and os.geteuid() == 0, reason="this host can carry a lab")
def test_a_run_on_such_a_host_is_refused_before_anything_is_made(
    testbed: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = testbed("run", "hello", "--clock", "real", "--on", "host", "--out", str(run))
    assert done.status == 4, done
    assert "run on the host's kernel" in done.err
    assert not run.exists()
    states = {
        (row["lab"], row["clock"], row["on"]): row
        for row in json.loads(testbed("doctor", "--json").out)["modes"]
    }
    assert states["mininet", "real", "host"]["state"] == "missing"
    assert states["mininet", "real", "guest"]["state"] == "works"


def test_the_virtual_clock_cannot_be_had_on_the_host(testbed: Command) -> None:
    done = testbed("run", "hello", "--clock", "virtual", "--on", "host")
    assert done.status == 2, done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make namespaces here")
def test_a_room_on_the_host_has_a_network_of_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    allowed = read_host_kernel().congestion[0]
    plan = prepare("hello", (f"tcp.congestion={allowed}",), clock="real", on="host").plan
    (run / "plan.json").write_text(plan.model_dump_json())
    outside = sorted(os.listdir("/sys/class/net"))
    mounts = Path("/proc/self/mounts").read_text()
    orders = Orders(
        run_folder=run, program=("/mnt/inside/host_room.py",), memory_bytes=2**28, entropy_seed=1,
        start_ns=plan.guest.start_ns, shown={"inside": INSIDE}, real=True, on_host=True,
    )  # fmt: skip
    outcome = boot(None, orders, cache_root())
    log = (run / "logs" / "guest.log").read_text()
    assert outcome.status == 0, log
    seen = json.loads((run / "seen.json").read_text())
    assert seen["devices"] == {node.name: len(node.interfaces) + 1 for node in plan.network.nodes}
    assert seen["congestion"] == allowed
    assert 1 in seen["pids"]
    assert len(seen["pids"]) < 10
    assert sorted(os.listdir("/sys/class/net")) == outside
    assert Path("/proc/self/mounts").read_text() == mounts
    left = [
        entry
        for entry in Path("/proc").glob("[0-9]*/cmdline")
        if str(run).encode() in _words(entry) or b"host_room" in _words(entry)
    ]
    assert left == []


def _words(entry: Path) -> bytes:
    try:
        return entry.read_bytes()
    except OSError:
        return b""
