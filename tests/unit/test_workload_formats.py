"""Every trace format loads into the same columns, or fails with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import PlanError
from testbed.workload.traces import FORMATS, Trace, load_trace

pytestmark = pytest.mark.unit

SECOND = 1_000_000_000
MOONCAKE = """\
{"timestamp": 500, "input_length": 1200, "output_length": 7, "hash_ids": [1, 2, 3]}
{"timestamp": 512, "input_length": 1000, "output_length": 0, "hash_ids": [1, 2]}
"""
BAILIAN = """\
{"chat_id": 7, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 40, \
"output_length": 9, "type": "text", "turn": 1, "hash_ids": [4, 5, 6]}
{"chat_id": 8, "parent_chat_id": 3, "timestamp": 61.2, "input_length": 16, \
"output_length": 1, "type": "file", "turn": 4, "hash_ids": [9]}
{"chat_id": 11, "parent_chat_id": 7, "timestamp": 62.114, "input_length": 64, \
"output_length": 2, "type": "text", "turn": 2, "hash_ids": [4, 5, 8, 10]}
{"chat_id": 12, "parent_chat_id": 11, "timestamp": 63.114, "input_length": 64, \
"output_length": 2, "type": "text", "turn": 3, "hash_ids": [4, 5, 8, 12]}
"""
AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:46.6805901,396,109
2023-11-17 00:00:00,879,55
"""
BURSTGPT = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45.5,ChatGPT,1087,0,1087,Conversation log
118,GPT-4,417,276,693,"API log, other"
"""
WHOLE = {"mooncake": MOONCAKE, "bailian": BAILIAN, "azure": AZURE, "burstgpt": BURSTGPT}


def loaded(folder: Path, form: str, text: str, take: int | None = None) -> Trace:
    path = folder / "trace.txt"
    path.write_text(text)
    return load_trace(path, take, form)


def test_mooncake_has_chained_blocks_of_512_tokens(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "mooncake", MOONCAKE)
    assert trace.at_ns.tolist() == [0, 12_000_000]
    assert trace.block_tokens == 512
    assert [trace.blocks_of(i).tolist() for i in range(2)] == [[1, 2, 3], [1, 2]]
    assert (trace.session, trace.turn) == (None, None)


def test_bailian_has_blocks_of_16_tokens_and_sessions(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "bailian", BAILIAN)
    assert trace.at_ns.tolist() == [0, 86_000_000, SECOND, 2 * SECOND]
    assert trace.hit_tokens is not None
    assert trace.hit_tokens.tolist() == [0, 0, 32, 48]
    assert trace.session is not None
    assert trace.turn is not None
    assert trace.session.tolist() == [7, 3, 7, 7]
    assert trace.turn.tolist() == [1, 4, 2, 3]


def test_azure_keeps_all_seven_fractional_digits(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "azure", AZURE)
    midnight_ns = (5 * 3600 + 44 * 60 + 14) * SECOND - 680_590_000
    assert trace.at_ns.tolist() == [0, 100, midnight_ns]
    assert trace.input_tokens.tolist() == [374, 396, 879]
    assert (trace.hit_tokens, trace.block_tokens) == (None, 0)
    assert trace.blocks_of(1).size == 0


def test_azure_of_2024_names_its_time_zone(tmp_path: Path) -> None:
    text = AZURE.replace(".6805900", ".680590+00:00")
    assert loaded(tmp_path, "azure", text).at_ns[1] == 100


def test_failed_requests_of_burstgpt_are_skipped_and_counted(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "burstgpt", BURSTGPT)
    assert trace.at_ns.tolist() == [0, 113 * SECOND]
    assert trace.output_tokens.tolist() == [18, 276]
    assert trace.skipped == 1
    assert trace.session is None


def test_sessions_of_a_later_burstgpt_release_are_read(tmp_path: Path) -> None:
    text = """\
Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
5,3,1.5,GPT-4,10,2,12,API log
6,4,1.5,GPT-4,10,2,12,API log
"""
    session = loaded(tmp_path, "burstgpt", text).session
    assert session is not None
    assert session.tolist() == [3, 4]


@pytest.mark.parametrize("form", FORMATS)
def test_take_counts_requests(tmp_path: Path, form: str) -> None:
    assert loaded(tmp_path, form, WHOLE[form], 2).at_ns.size == 2
    assert loaded(tmp_path, form, WHOLE[form], 1).at_ns.tolist() == [0]


@pytest.mark.parametrize("form", FORMATS)
def test_blank_lines_and_other_line_ends_change_nothing(tmp_path: Path, form: str) -> None:
    plain = loaded(tmp_path, form, WHOLE[form])
    spaced = loaded(tmp_path, form, "\n" + WHOLE[form].replace("\n", "\r\n\r\n"))
    assert spaced.at_ns.tolist() == plain.at_ns.tolist()
    assert spaced.output_tokens.tolist() == plain.output_tokens.tolist()


@pytest.mark.parametrize(
    ("form", "old", "new", "line", "reason"),
    [
        ("bailian", '"chat_id": 11', '"chat_id": 7', 3, "earlier line"),
        ("bailian", '"parent_chat_id": 3', '"parent_chat_id": 8', 2, "own parent"),
        ("bailian", '"parent_chat_id": 3', '"parent_chat_id": -2', 2, "parent_chat_id"),
        ("bailian", '"turn": 4', '"turn": 0', 2, "turn"),
        ("bailian", "[9]", "[9, 10]", 2, "more than the 16-token blocks"),
        ("bailian", "61.2", "61.1", 2, "lies before"),
        ("bailian", '"turn": 1', '"turn": "1"', 1, "turn"),
        ("azure", "396", "0", 3, "ContextTokens"),
        ("azure", "396", "3_9", 3, "ContextTokens"),
        ("azure", "396", "-3", 3, "ContextTokens"),
        ("azure", "396,", "", 3, "has 2 fields"),
        ("azure", "46.6805901", "46.68059012", 3, "TIMESTAMP"),
        ("azure", "11-17", "13-17", 4, "TIMESTAMP"),
        ("azure", "11-17", "11-15", 4, "lies before"),
        ("azure", "GeneratedTokens", "Generated", 1, "lacks the column GeneratedTokens"),
        ("burstgpt", "490", "491", 2, "Total tokens"),
        ("burstgpt", "45.5", "4e1", 3, "Timestamp"),
        ("burstgpt", "45.5", "nan", 3, "Timestamp"),
        ("burstgpt", "417,276,693", "0,276,276", 4, "Request tokens"),
        ("burstgpt", '"API log, other"', '"API log', 4, "unexpected end"),
        ("burstgpt", "Log Type", "Model", 1, "lacks the column Log Type"),
    ],
)
def test_a_wrong_line_is_named(
    tmp_path: Path, form: str, old: str, new: str, line: int, reason: str
) -> None:
    assert old in WHOLE[form]
    with pytest.raises(PlanError, match=rf"trace\.txt:{line}: (.|\n)*{reason}"):
        loaded(tmp_path, form, WHOLE[form].replace(old, new, 1))


@pytest.mark.parametrize("form", ["azure", "burstgpt"])
def test_a_table_needs_a_header_and_a_request(tmp_path: Path, form: str) -> None:
    with pytest.raises(PlanError, match="lacks the column"):
        loaded(tmp_path, form, "")
    with pytest.raises(PlanError, match="holds no request"):
        loaded(tmp_path, form, WHOLE[form].splitlines()[0])


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no format parquet"):
        loaded(tmp_path, "parquet", MOONCAKE)
