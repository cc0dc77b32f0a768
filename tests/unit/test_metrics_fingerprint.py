"""The fingerprint of a timeline: what it is made of, and what changes it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from testbed.contract.event import Kind
from testbed.metrics import compute
from tests.fakes.hand_run import story, told, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", story())


def test_the_fingerprint_is_the_hash_of_the_sorted_lines(run: Path) -> None:
    lines = [
        json.loads(line)
        for path in (run / "events").iterdir()
        for line in path.read_text().splitlines()
    ]
    lines.sort(key=lambda line: (line["t"], line["node"], line["seq"]))
    text = "".join("{t}\t{node}\t{seq}\t{kind}\t{size}\n".format(**line) for line in lines)
    assert compute(run)["timeline_sha256"] == hashlib.sha256(text.encode()).hexdigest()


def test_a_nanosecond_or_a_byte_changes_the_fingerprint(tmp_path: Path) -> None:
    hashes = set()
    for name, shift, size in (("a", 0.0, 1_000), ("b", 1e-6, 1_000), ("c", 0.0, 1_001)):
        events = [*story(), told(3_600 + shift, "c1", Kind.REQUEST_SENT, size, req=3)]
        hashes.add(compute(write_run(tmp_path / name, events))["timeline_sha256"])
    assert len(hashes) == 3


def test_the_real_clock_has_no_fingerprint(tmp_path: Path) -> None:
    assert compute(write_run(tmp_path / "run", story(), clock="real"))["timeline_sha256"] is None
