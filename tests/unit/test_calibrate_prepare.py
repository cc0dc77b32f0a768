"""What a calibration builds, and what it refuses before anything is touched."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from testbed.cli.calibration_table import print_rows
from testbed.errors import ExitStatus, HostError, ScenarioError, UsageError
from testbed.fidelity.calibrate import Effort
from testbed.fidelity.row import CalibrationRow
from testbed.run.calibrate import Calibrated, calibrate, prepare_calibration
from testbed.scenario.alone import topology_alone
from testbed.scenario.data import DataKind, names
from testbed.scenario.named import load_topology

pytestmark = pytest.mark.unit


def row(ok: bool, quantity: str = "rate") -> CalibrationRow:
    return CalibrationRow(
        link="wan1", direction="forward", quantity=quantity, requested="10 Gbit/s",
        measured="9.9 Gbit/s", tolerance="0.5%", ok=ok,
    )  # fmt: skip


@pytest.mark.parametrize("name", names(DataKind.TC_PROFILES))
def test_a_profile_is_put_on_one_leg_and_nothing_else_is_built(name: str) -> None:
    network = prepare_calibration(name, Effort.FULL).order.network
    assert [node.name for node in network.nodes] == ["tor-a", "tor-b", "wan1"]
    assert [link.kind for link in network.links] == ["wan"]
    devices = {i.name for node in network.nodes for i in node.interfaces}
    assert devices == {"tor-a-wan1", "tor-b-wan1", "wan1-a", "wan1-x", "wan1-y", "wan1-b"}
    assert {one.interface for one in network.neighbours} <= devices
    assert network.links[0].forward.seed != network.links[0].backward.seed


@pytest.mark.parametrize("name", names(DataKind.TOPOLOGIES))
def test_a_topology_keeps_its_own_profiles(name: str) -> None:
    scenario = topology_alone(name)
    wanted = {kind: f"tc profile {use.profile}" for kind, use in load_topology(name).links.items()}
    assert dict(scenario.sources).items() >= {(f"link {k}", v) for k, v in wanted.items()}
    network = prepare_calibration(name, Effort.QUICK).order.network
    assert {link.kind for link in network.links} == set(wanted)


def test_overrides_and_seed_reach_the_link() -> None:
    plain = prepare_calibration("wan-10g", Effort.FULL).order.network.links[0].forward
    other = prepare_calibration("wan-10g", Effort.FULL, ("links.wan.rtt=4 ms",), 7)
    assert other.order.network.links[0].forward.delay_ns == 2_000_000
    assert other.order.network.links[0].forward.seed != plain.seed


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(UsageError) as caught:
        prepare_calibration("wan-10g-jiter", Effort.FULL)
    assert "did you mean 'wan-10g-jitter'" in caught.value.cause
    for name in (*names(DataKind.TOPOLOGIES), *names(DataKind.TC_PROFILES)):
        assert name in caught.value.cause


def test_a_wrong_override_is_refused() -> None:
    with pytest.raises(ScenarioError, match="has no unit"):
        prepare_calibration("wan-10g", Effort.FULL, ("links.wan.rtt=5",))


def test_without_a_kernel_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(HostError) as caught:
        calibrate(prepare_calibration("clean", Effort.QUICK), tmp_path / "run")
    assert caught.value.exit_status == ExitStatus.UNABLE
    assert "testbed kernel build" in caught.value.remedy
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ((row(True),), ExitStatus.PASS),
        ((row(True), row(False)), ExitStatus.INVALID),
        ((), ExitStatus.INVALID),
    ],
)
def test_one_wrong_row_or_none_at_all_is_invalid(
    rows: tuple[CalibrationRow, ...], status: ExitStatus
) -> None:
    assert Calibrated(Path("run"), rows, 1.0).exit_status is status


def test_the_table_shows_every_row_and_marks_the_wrong_one() -> None:
    out = io.StringIO()
    print_rows([row(True), row(False, "delay [x]")], Console(file=out))
    assert out.getvalue().count("10 Gbit/s") == 2
    assert "delay [x]" in out.getvalue()
    assert out.getvalue().count("WRONG") == 1
