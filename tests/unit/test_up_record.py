"""What wires wrote on their own becomes one record, or the run says what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.contract.demand import Costs
from testbed.contract.meeting import Meeting, Said
from testbed.contract.network import Network
from testbed.errors import AnalysisError, FidelityError
from testbed.run.prepare import prepare
from testbed.run.up.record import (
    ROWS,
    SAMPLES,
    gather_costs,
    gather_fidelity,
    gather_samples,
    wires_of,
)

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def network() -> Network:
    return prepare("hello", lab="compose").plan.network


@pytest.fixture
def run(tmp_path: Path, network: Network) -> Path:
    """A run in which every wire measured its links and took two samples."""
    meeting = Meeting(tmp_path)
    meeting.open()
    (tmp_path / "events").mkdir()
    for number, wire in enumerate(wires_of(network)):
        row = {
            "link": wire,
            "direction": "forward",
            "quantity": "rate",
            "measured": "1",
            "ok": True,
        }
        sections = {
            "costs": [{"superframe_s": number / 1e6, "frame_s": (9 - number) / 1e6}],
            "measured": [row],
            "fields": [],
        }
        meeting.say(Said.MEASURED, f"{wire}{ROWS}", json.dumps(sections))
        lines = [
            {"t": -5 + number, "kind": "agent.ready", "role": "lab"},
            {"t": 100 - number, "kind": "link.sample", "link": wire, "dir": "forward"},
            {"t": 200, "kind": "link.sample", "link": wire, "dir": "backward"},
            {"t": 300 + number, "kind": "agent.stop", "status": 0},
        ]
        samples_of(tmp_path, wire).write_text(
            "".join(json.dumps({**line, "node": "lab", "seq": n}) + "\n"
                    for n, line in enumerate(lines))
        )  # fmt: skip
    return tmp_path


def samples_of(run: Path, wire: str) -> Path:
    return Meeting(run).folder / Said.MEASURED.value / f"{wire}{SAMPLES}"


def test_samples_become_one_record_in_the_order_of_time(run: Path, network: Network) -> None:
    gather_samples(run, network)
    lines = [json.loads(text) for text in (run / "events" / "lab.jsonl").read_text().splitlines()]
    assert [line["seq"] for line in lines] == list(range(2 + 2 * len(wires_of(network))))
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
    assert [line["kind"] for line in (lines[0], lines[-1])] == ["agent.ready", "agent.stop"]
    assert (lines[0]["t"], lines[-1]["t"]) == (-5, 299 + len(wires_of(network)))


def test_a_wire_that_ended_early_is_named(run: Path, network: Network) -> None:
    path = samples_of(run, "wan2")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(AnalysisError, match=r"wan2.*ended early"):
        gather_samples(run, network)


def test_a_wire_without_samples_is_named(run: Path, network: Network) -> None:
    samples_of(run, "wan1").unlink()
    with pytest.raises(AnalysisError, match="wan1"):
        gather_samples(run, network)


def test_a_gap_in_the_numbers_is_named(run: Path, network: Network) -> None:
    path = samples_of(run, "fab-a")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + "".join(lines[2:]))
    with pytest.raises(AnalysisError, match="line 2 has number 2"):
        gather_samples(run, network)


def test_the_slowest_wire_says_what_a_packet_costs(run: Path, network: Network) -> None:
    assert gather_costs(run, network) == Costs(superframe_s=3e-6, frame_s=9e-6)


def test_all_rows_are_written(run: Path, network: Network) -> None:
    gather_fidelity(run, network)
    written = json.loads((run / "fidelity.json").read_text())
    assert [row["link"] for row in written["measured"]] == list(wires_of(network))


def test_a_quantity_that_is_off_is_named_and_written(run: Path, network: Network) -> None:
    row = {"link": "wan1", "direction": "forward", "quantity": "rate", "measured": "7", "ok": False}
    words = json.dumps({"measured": [row], "fields": []})
    Meeting(run).say(Said.MEASURED, f"wan1{ROWS}", words)
    with pytest.raises(FidelityError, match="wan1 forward rate: 7"):
        gather_fidelity(run, network)
    assert not json.loads((run / "fidelity.json").read_text())["measured"][-2]["ok"]


def test_a_wire_that_measured_nothing_is_named(run: Path, network: Network) -> None:
    (Meeting(run).folder / Said.MEASURED.value / f"fab-b{ROWS}").unlink()
    with pytest.raises(FidelityError, match="fab-b"):
        gather_fidelity(run, network)
