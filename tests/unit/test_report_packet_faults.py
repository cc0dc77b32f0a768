"""The report says in words what faults of packets and connections do."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.fault import PlannedFault, Reordering, ResetFault, TrafficFault
from testbed.contract.sieve import Flows, Hold, Sieve
from testbed.report.fault_table import fault_table
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder
from tests.unit.test_report_faults import MS, ONCE, on_link, with_faults

pytestmark = pytest.mark.unit
PAIR = Flows(between=("10.1.1.2", "10.2.1.2"), port=7001)
TRAFFIC = TrafficFault(
    name="others", spans=ONCE, nodes=("p1", "p2"), source_addresses=("10.1.2.2", "10.1.3.2"),
    to="md1", to_address="10.2.1.2", port=7100, source_port=61_000, flows=2, on_ns=0, off_ns=0,
    seed=1,
)  # fmt: skip
SAID: tuple[tuple[PlannedFault, str], ...] = (
    (on_link(Reordering(share=0.02)), "2.0 % of the frames overtake the others"),
    (on_link(Hold(stop_ns=2 * MS, each_ns=10 * MS)), "sends nothing for 1.00 ms of every 5.00 ms"),
    (on_link(Sieve(kind="syn-loss", share=0.5)), "50.0 % of the segments with SYN vanish"),
    (
        on_link(Sieve(kind="blackhole", flows=PAIR)),
        "all packets vanish between 10.1.1.2 and 10.2.1.2, TCP port 7001",
    ),
    (on_link(Sieve(kind="mtu", above=1400)), "packets above 1400 bytes vanish"),
    (
        on_link(Sieve(kind="mark", share=0.1)),
        "10.0 % of the ECN-capable packets are marked",
    ),
    (
        ResetFault(name="cut-off", spans=ONCE, nodes=("p1",), peer="10.2.1.2", port=7001),
        "TCP connections with 10.2.1.2, TCP port 7001 are reset",
    ),
    (TRAFFIC, "send to md1 over 2 connections each, all the time"),
    (
        TRAFFIC.model_copy(update={"on_ns": 40 * MS, "off_ns": 160 * MS}),
        "send to md1 over 2 connections each, on for 20.0 ms, off for 80.0 ms on average",
    ),
)


@pytest.mark.parametrize(("fault", "words"), SAID, ids=range(len(SAID)))
def test_each_is_said_in_emulated_units(tmp_path: Path, fault: PlannedFault, words: str) -> None:
    run = write_run_folder(tmp_path / "run", FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4))
    (row,) = fault_table(with_faults(run, fault, slow=2.0)).rows
    assert row[2] == words
