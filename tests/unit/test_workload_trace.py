"""Mooncake traces load into arrivals, lengths and hits, or fail with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.contract.agent import Request, Shape, Window
from testbed.errors import PlanError
from testbed.scenario.workload import Workload
from testbed.workload import draw, load_trace

SECOND = 1_000_000_000
ROWS = (
    {"timestamp": 500, "input_length": 1200, "output_length": 7, "hash_ids": [1, 2, 3]},
    {"timestamp": 500, "input_length": 1000, "output_length": 0, "hash_ids": [1, 2]},
    {"timestamp": 1500, "input_length": 1536, "output_length": 9, "hash_ids": [1, 5, 3]},
    {"timestamp": 4500, "input_length": 600, "output_length": 3, "hash_ids": [8, 2]},
)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("\n".join(lines or [json.dumps(row) for row in ROWS]) + "\n")
    return path


def requests(path: Path, window_s: int = 10, **arrivals: str | int) -> tuple[Request, ...]:
    asked = Workload.model_validate(
        {
            "arrivals": {"kind": "trace", "file": "trace.jsonl", **arrivals},
            "input": {"kind": "trace", "high": "1024 tokens"},
            "hit": {"kind": "trace"},
            "output": {"kind": "trace", "high": "8 tokens"},
        }
    )
    shape = Shape(block_tokens=256, ratio=128, bytes_per_token=10)
    window = Window(warm_up_ns=0, measure_ns=window_s * SECOND, drain_ns=1)
    return draw(asked, shape, ["p1"], ["md1"], window, 1, 1e9, 1, load_trace(path))[0]


def test_times_count_from_the_first_request(tmp_path: Path) -> None:
    assert load_trace(written(tmp_path)).at_ns.tolist() == [0, 0, SECOND, 4 * SECOND]


def test_a_hit_is_the_longest_known_prefix(tmp_path: Path) -> None:
    trace = load_trace(written(tmp_path))
    # none; all of its 1,000 tokens; one block (5 is new, so 3 behind it does not count); none
    assert trace.hit_tokens.tolist() == [0, 1000, 512, 0]


def test_a_request_follows_the_trace_in_whole_blocks_and_within_bounds(tmp_path: Path) -> None:
    drawn = requests(written(tmp_path))
    assert [request.at_ns for request in drawn] == [0, 0, SECOND, 4 * SECOND]
    assert [request.input_tokens for request in drawn] == [1024, 768, 1024, 512]
    assert [request.hit_tokens for request in drawn] == [0, 768, 512, 0]
    assert [request.output_tokens for request in drawn] == [7, 1, 8, 3]


def test_the_time_axis_stretches_to_a_rate(tmp_path: Path) -> None:
    drawn = requests(written(tmp_path), rate="0.5 /s")
    assert [request.at_ns for request in drawn] == [0, 0, 1_500_000_000, 6_000_000_000]


def test_only_the_rows_taken_and_those_before_the_end_are_used(tmp_path: Path) -> None:
    assert len(requests(written(tmp_path), take=3)) == 3
    assert len(requests(written(tmp_path), window_s=2)) == 3


def test_a_trace_of_one_moment_has_no_rate_to_stretch(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="at one moment"):
        requests(written(tmp_path), take=2, rate="1 /s")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Invalid JSON"),
        ('{"timestamp": 1}', "input_length"),
        (json.dumps(ROWS[0] | {"input_length": 0}), "greater than or equal to 1"),
        (json.dumps(ROWS[0] | {"input_length": "9"}), "input_length"),
        (json.dumps(ROWS[0] | {"timestamp": -1}), "timestamp"),
        (json.dumps(ROWS[0] | {"timestamp": 3}), "lies before"),
        (json.dumps(ROWS[0] | {"hash_ids": [1, 2, 3, 4]}), "more than the 512-token blocks"),
        (json.dumps(ROWS[0] | {"hash_ids": [1, -2]}), "hash_ids"),
        (" " * 300_000, "longer than"),
    ],
)
def test_a_wrong_line_is_named_with_file_and_line(tmp_path: Path, line: str, reason: str) -> None:
    path = written(tmp_path, json.dumps(ROWS[0]), line)
    with pytest.raises(PlanError, match=rf"trace\.jsonl:2(.|\n)*{reason}"):
        load_trace(path)


def test_an_empty_trace_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="holds no request"):
        load_trace(written(tmp_path, ""))
    with pytest.raises(PlanError, match="No such file"):
        load_trace(tmp_path / "absent.jsonl")


def test_a_trace_workload_without_its_trace_is_refused() -> None:
    asked = Workload.model_validate(
        {
            "arrivals": {"kind": "trace", "file": "trace.jsonl"},
            "input": {"kind": "fixed", "tokens": "128 tokens"},
            "hit": {"kind": "fixed", "share": "0 %"},
            "output": {"kind": "fixed", "tokens": "2 tokens"},
        }
    )
    shape = Shape(block_tokens=128, ratio=128, bytes_per_token=10)
    window = Window(warm_up_ns=0, measure_ns=SECOND, drain_ns=1)
    with pytest.raises(PlanError, match="was not loaded"):
        draw(asked, shape, ["p1"], ["md1"], window, 1, 1e9, 1)
