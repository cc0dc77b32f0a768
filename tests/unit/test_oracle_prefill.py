"""Without a lab, transfers start when an ideal first-come-first-served prefill ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.agent import Hardware, Request
from testbed.errors import AnalysisError
from testbed.oracle import IdealLink, Transfer, after_prefill, read_outcomes, share, write_outcomes
from testbed.oracle.prefill import prefill_s

HARDWARE = Hardware(
    name="h",
    source="test",
    prefill_base_s=1.0,
    prefill_token_s=0.01,
    prefill_attention_s=0.0001,
    decode_base_s=0,
    decode_sequence_s=0,
    decode_context_s=0,
)


def request(id: int, at_s: int, hit: int, prefill: str = "p1") -> Request:
    return Request(
        id=id,
        at_ns=at_s * 1_000_000_000,
        input_tokens=200,
        hit_tokens=hit,
        output_tokens=1,
        blocks=1,
        wire_bytes=50 + id,
        prefill=prefill,
        decode="md1",
    )


def test_prefill_time_follows_the_hardware_profile() -> None:
    assert prefill_s(HARDWARE, 0, 200) == pytest.approx(1.0)
    assert prefill_s(HARDWARE, 100, 100) == pytest.approx(1.0 + 1.0 + 100 * 150 * 0.0001)


def test_requests_of_one_instance_wait_for_each_other_and_others_do_not() -> None:
    rows = after_prefill(
        [request(1, 0, 200), request(0, 0, 200), request(2, 5, 200), request(3, 0, 200, "p2")],
        HARDWARE,
    )
    starts = {row.req: (row.at_s, row.size_bytes, row.pair) for row in rows}
    assert starts == {
        0: (1.0, 50, "p1 md1"),
        1: (2.0, 51, "p1 md1"),
        2: (6.0, 52, "p1 md1"),
        3: (1.0, 53, "p2 md1"),
    }


def test_outcomes_read_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "oracle.jsonl"
    outcomes = share([Transfer(0, 0.1, 10), Transfer(1, 0.2, 7)], IdealLink(24.0, 1, 0.3))
    write_outcomes(path, outcomes)
    write_outcomes(path, outcomes)
    assert read_outcomes(path) == outcomes


@pytest.mark.parametrize("line", ["{", "[]", '{"req": 1}'])
def test_a_broken_oracle_file_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "oracle.jsonl"
    write_outcomes(path, share([Transfer(0, 0.0, 1)], IdealLink(8.0, 1)))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(AnalysisError, match=r"oracle\.jsonl:2"):
        read_outcomes(path)
