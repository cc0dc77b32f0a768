"""``testbed calibrate`` as a user calls it, and the topologies under Mininet's own command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.lab.guest.boot import Kernel, Orders, boot, tail
from testbed.lab.guest.kernel.cache import cache_root, kernel_path
from tests.lab.conftest import Command, environment

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

START_NS = 1_767_225_600 * 10**9
QUANTITIES = (
    "fields read back", "rate, 1500 frames of 9014 B", "buffer", "delay, lone frames of 64 B",
    "delay, lone frames of 9014 B", "fate of 10000 frames", "jitter of each frame, in order",
    "jitter distribution",
)  # fmt: skip
SPOIL = """
import subprocess
from pathlib import Path
from testbed.fidelity import inside
from testbed.lab.namespace import entered
from testbed.lab.wires import Wires

class Spoiled(Wires):
    def apply(self):
        super().apply()
        with entered(self._wires["wan1"].path):
            subprocess.run(
                "tc qdisc replace dev wan1-x root netem rate 9900mbit limit 9000000".split(),
                check=True,
            )

inside.Wires = Spoiled
inside.calibrate_run(Path("/mnt/run"))
"""
SPOILED_COMMAND = f"""
from testbed.cli import main
from testbed.run import calibrate
calibrate.INSIDE = ("-c", {SPOIL!r})
main()
"""


def rows_of(text: str) -> list[dict[str, object]]:
    rows = json.loads(text)
    assert isinstance(rows, list)
    return rows


def test_a_profile_with_jitter_passes_and_every_quantity_is_shown(
    testbed: Command, tmp_path: Path
) -> None:
    done = testbed("calibrate", "wan-10g-jitter", "--out", "run")
    assert done.status == 0, done.out + done.err
    for direction in ("forward", "backward"):
        assert f"wan1 {direction}" in done.out
    for head in ("requested", "compiled", "applied", "measured", "tolerance"):
        assert done.out.count(f" {head} ") >= 2
    rows = json.loads((tmp_path / "run" / "fidelity.json").read_text("utf-8"))["rows"]
    assert all(row["ok"] for row in rows)
    for quantity in QUANTITIES:
        found = [row for row in rows if quantity in row["quantity"]]
        assert sorted(row["direction"] for row in found) == ["backward", "forward"], quantity
    assert all(row["compiled"] and row["compiled"] == row["applied"] for row in rows[1:9])
    assert done.out.count(" ok ") >= len(rows)
    again = testbed("calibrate", "wan-10g-jitter", "--out", "run")
    assert again.status == 2
    assert "already" in again.err
    ledger = (tmp_path / "run" / "ledger.jsonl").read_text("utf-8")
    made = [json.loads(line) for line in ledger.splitlines()]
    assert {one["name"] for one in made if one["kind"] == "node"} == {"tor-a", "tor-b", "wan1"}


def test_every_link_of_a_topology_is_measured_with_overrides(testbed: Command) -> None:
    parameters = ("--set", "topology.parameters.decode=2", "--set", "links.wan.rtt=4 ms")
    done = testbed("calibrate", "two-dc", "--quick", "--json", *parameters)
    assert done.status == 0, done.out + done.err
    rows = rows_of(done.out)
    assert {row["link"] for row in rows} == {"c1", "p1", "md1", "md2", "wan1", "wan2"}
    delays = [row for row in rows if row["link"] == "wan2" and "delay" in str(row["quantity"])]
    assert {row["requested"] for row in delays} == {"2000000 ns"}


@pytest.mark.parametrize(
    ("topology", "lines"),
    [
        ("many-to-one", {"wan1": "10 ms", "wan4": "10 ms", "peer1": "2 ms"}),
        ("mesh", {"wan1": "10 ms", "wan4": "10 ms", "peer1": "2 ms", "peer2": "2 ms"}),
    ],
)
def test_every_line_between_many_sites_is_what_was_asked(
    testbed: Command, topology: str, lines: dict[str, str]
) -> None:
    settings = ("--set", "links.wan={rtt: 20 ms, loss: none, segmentation: superframe}",
                "--set", "links.peer={rtt: 4 ms}")  # fmt: skip
    done = testbed("calibrate", topology, "--quick", "--json", *settings)
    assert done.status == 0, done.out + done.err
    rows = rows_of(done.out)
    assert all(row["ok"] for row in rows)
    for link, delay in lines.items():
        asked = [row["requested"] for row in rows
                 if row["link"] == link and "delay" in str(row["quantity"])]  # fmt: skip
        assert asked
        assert set(asked) == {f"{delay.removesuffix(' ms')}000000 ns"}


def test_a_wrong_qdisc_is_invalid(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SPOILED_COMMAND, "calibrate", "wan-10g", "--quick", "--json"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    wrong = [row for row in rows_of(done.stdout) if not row["ok"]]
    assert {row["direction"] for row in wrong} == {"forward"}
    assert ["fields" in str(row["quantity"]) for row in wrong] == [True, False]
    assert "9.9" in str(wrong[1]["measured"])


@pytest.mark.parametrize(
    ("topology", "pairs"),
    [
        ("two-dc,prefill=2", 12), ("one-rack,decode=2", 12), ("prfaas", 12),
        ("many-to-one,primaries=2,decode=1", 20), ("mesh,primaries=2,remotes=2", 30),
    ],
)  # fmt: skip
def test_mininet_reaches_every_host_of_a_topology(
    tmp_path: Path, topology: str, pairs: int
) -> None:
    linux = kernel_path()
    assert linux is not None
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    program = (
        "/mnt/venv/bin/mn", "--custom", "/mnt/src/topologies/mn.py",
        "--topo", topology, "--test", "pingall",
    )  # fmt: skip
    orders = Orders(run, program, 1 << 30, 1, START_NS)
    outcome = boot(Kernel(linux, linux.with_name("entropy.so")), orders, cache_root())
    log = tail(run / "logs" / "guest.log", 60)
    assert outcome.status == 0, log
    assert f"0% dropped ({pairs}/{pairs} received)" in log
