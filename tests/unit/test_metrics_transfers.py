"""One row a transfer: which attempt is timed, and the table that is written."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest

from testbed.contract.event import Kind, Value
from testbed.errors import UsageError
from testbed.metrics.tail import transfer_rows, write_table
from tests.fakes.hand_run import Told, story, transfer, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", story())


def test_a_second_attempt_is_timed_from_its_own_acquisition(tmp_path: Path) -> None:
    on: dict[str, Value] = {"req": 3, "peer": "md1"}
    events = [
        *story(),
        Told(2_810, "p1", Kind.POOL_QUEUED, 0, on),
        Told(2_810, "p1", Kind.POOL_ACQUIRED, 0, on),
        Told(2_820, "p1", Kind.POOL_RELEASED, 0, on),
        *transfer(3, 2_830, 2_850, 2_860),
    ]
    rows = {row.req: row for row in transfer_rows(write_run(tmp_path / "run", events))}
    assert rows[3].wait_s == pytest.approx(0.020)
    assert rows[3].duration_s == pytest.approx(0.010)
    assert rows[3].oracle_duration_s is None


def test_the_tail_names_who_was_slow(run: Path, tmp_path: Path) -> None:
    rows = transfer_rows(run)
    assert [(row.req, row.in_window) for row in rows] == [(0, False), (1, True), (2, True)]
    assert rows[2].duration_s == pytest.approx(0.9)
    assert rows[2].hit_share == 0.75
    write_table(tmp_path / "tail.csv", rows)
    header, *lines = (tmp_path / "tail.csv").read_text().splitlines()
    assert header.startswith("req,in_window,arrival_s,size_bytes,hit_share")
    assert len(lines) == 3
    write_table(tmp_path / "tail.parquet", rows)
    table = pandas.read_parquet(tmp_path / "tail.parquet")
    assert table["req"].tolist() == [0, 1, 2]
    with pytest.raises(UsageError, match=r"\.csv"):
        write_table(tmp_path / "tail.xlsx", rows)
