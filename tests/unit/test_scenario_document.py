"""Reading YAML: plain data with places, and nothing that a file could attack with."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import ScenarioError
from testbed.scenario.document import MAX_BYTES, parse_document, parse_value, read_document
from testbed.scenario.override import override

pytestmark = pytest.mark.unit


def test_keys_keep_their_lines() -> None:
    document = parse_document("a: 1\nb:\n  c: [x, {d: 2.5}]\n", "f.yaml")
    assert document.data == {"a": 1, "b": {"c": ["x", {"d": 2.5}]}}
    assert document.place(("b", "c", 1, "d")) == "f.yaml:3"
    assert document.place(("b", "missing")) == "f.yaml:2"


def test_a_fault_reads_file_line_key_reason() -> None:
    document = parse_document("a:\n  b: 1\n", "f.yaml")
    assert document.fault(("a", "b"), "is odd") == "f.yaml:2: a.b: is odd"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: &x [1]\nb: *x\n", "anchors and aliases"),
        ("a: !!python/object:os.system ls\n", "tag"),
        ("a: !custom 1\n", "tag"),
        ("a: !!python/object {name: x}\n", "tag"),
        ("a: !foo {kind: x}\n", "tag"),
        ('a: !seq ["a"]\n', "tag"),
        ("a: !!str hello\n", "tag"),
        ('a: !!int "5"\n', "tag"),
        ("a: !!null x\n", "tag"),
        ("a: ! hello\n", "tag"),
        ("!!str a: 1\n", "tag"),
        ("!!map {a: 1}\n", "tag"),
        ("a: !<tag:yaml.org,2002:str> x\n", "tag"),
        ("a:\n", "has no value"),
        ("a: {b: }\n", "has no value"),
        ("a:\n  -\n", "has no value"),
        ("a: 1\na: 2\n", "given twice"),
        ("<<: {a: 1}\n", "plain text"),
        ("[1, 2]: 3\n", "plain text"),
        ("- 1\n", "must be a mapping"),
        ("", "must be a mapping"),
        ("a: [1\n", "is not YAML"),
        ("a: 1\n\tb: 2\n", "is not YAML"),
        ("a: " + "[" * 40 + "]" * 40 + "\n", "nested deeper"),
        ("a: [" + "1," * 30_000 + "]\n", "more than"),
        ("a: 1\n---\nb: 2\n", "is not YAML"),
    ],
)
def test_what_is_not_plain_data_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason) as caught:
        parse_document(text, "f.yaml")
    assert all(fault.startswith("f.yaml:") for fault in caught.value.faults)


def test_a_tag_is_refused_at_its_own_line() -> None:
    with pytest.raises(ScenarioError, match=r"f.yaml:3: the tag '!foo' is not allowed"):
        parse_document("a: 1\nb:\n  c: !foo {d: 1}\n", "f.yaml")


def test_an_explicit_null_is_a_value() -> None:
    assert parse_document("a: null\nb: ~\n", "f.yaml").data == {"a": None, "b": None}


def test_aliases_that_would_explode_are_refused_before_they_are_built() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ScenarioError, match="anchors and aliases"):
        parse_document("\n".join(lines), "bomb.yaml")


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("# " + "x" * MAX_BYTES)
    with pytest.raises(ScenarioError, match="larger than") as caught:
        read_document(path)
    assert len(caught.value.faults) == 1


def test_other_files_are_refused_with_their_cause(tmp_path: Path) -> None:
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ScenarioError, match=r"b.yaml:2: is not UTF-8"):
        read_document(binary)
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_document(tmp_path / "none.yaml")
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_document(tmp_path / ("n" * 5_000))


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.yaml"))
        for path, kind in (
            (pipe, "a pipe"),
            (tmp_path, "a directory"),
            (Path("/dev/zero"), "a device"),
            (tmp_path / "socket.yaml", "a socket"),
        ):
            with pytest.raises(ScenarioError, match=f"it is {kind}, and only regular") as caught:
                read_document(path)
            assert caught.value.faults[0].startswith(f"{path}:1: ")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "is empty"),
        (b"# only a comment\n", "is empty"),
        (b"---\n", "is empty|no value"),
        (b"\x7fELF\x02\x01\x00\x00", "is not YAML"),
        (b"\x89PNG\r\n", "is not UTF-8"),
        ("a: é\n".encode("latin-1"), "is not UTF-8"),
        ("a: 1\n".encode("utf-16"), "is not UTF-8"),
        (b"a: 1\n" * 60_000, "larger than"),
    ],
)
def test_a_file_that_is_no_scenario_gives_one_clear_fault(
    tmp_path: Path, raw: bytes, reason: str
) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(raw)
    with pytest.raises(ScenarioError, match=reason) as caught:
        read_document(path)
    (fault,) = caught.value.faults
    assert fault.startswith((f"{path}:1: ", f"{path}:2: "))
    assert len(fault) < len(str(path)) + 200


@given(st.text(max_size=200))
def test_any_text_gives_data_or_a_scenario_error(text: str) -> None:
    with contextlib.suppress(ScenarioError):
        parse_value(text, "f.yaml")


def test_an_override_sets_adds_and_is_named_as_the_place() -> None:
    document = parse_document("a: {b: 1}\n", "f.yaml")
    changed = override(document, ("a.b=2", "c.d.e=[3 ms, x]", "expect.metrics.ttft.p99_s=< 1 s"))
    assert changed.data == {
        "a": {"b": 2},
        "c": {"d": {"e": ["3 ms", "x"]}},
        "expect": {"metrics": {"ttft.p99_s": "< 1 s"}},
    }
    assert changed.place(("a", "b")).startswith("--set")
    assert changed.place(("a",)) == "f.yaml:1"
    assert document.data == {"a": {"b": 1}}


@pytest.mark.parametrize("setting", ["a.b=", "a.b=  ", "a.b=# nothing", "a.b={c: }", "a.b=[{c: }]"])
def test_a_setting_without_a_value_is_a_slip(setting: str) -> None:
    with pytest.raises(ScenarioError, match=r"--set a\.b: .*(no value|not YAML)"):
        override(parse_document("a: {b: 1}\n", "f.yaml"), (setting,))


def test_null_removes_an_optional_value() -> None:
    document = override(parse_document("a: {b: 1}\n", "f.yaml"), ("a.b=null",))
    assert document.data == {"a": {"b": None}}


@pytest.mark.parametrize(
    "setting",
    ["a", "=3", "a..b=3", "a.b.c=3", "a.b={x", "a.b=&x 1", 'a.b=!!int "5"', "x." * 5_000 + "y=1"],
)
def test_a_setting_that_cannot_be_is_refused(setting: str) -> None:
    with pytest.raises(ScenarioError, match="--set"):
        override(parse_document("a: {b: 1}\n", "f.yaml"), (setting,))
