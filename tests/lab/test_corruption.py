"""Damaged KV between real agents is noticed, and its request reported failed, never answered.

Three kinds of damage: bits flipped on the line under TCP's checksum (netem), bits flipped
on the line where the checksum does not see it, and a sender whose bytes are wrong.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.lab.guest.boot import Orders, boot, tail
from testbed.lab.guest.kernel.cache import cache_root
from testbed.run.execute import analyse, lab_kernel
from testbed.run.folder import make_folder, write_inputs
from testbed.run.prepare import prepare
from tests.lab.conftest import Command

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

INSIDE = Path(__file__).with_name("inside")
REQUESTS = range(8)


@dataclass(frozen=True, slots=True)
class Ended:
    """How the eight requests of ``hello`` ended, and what was found."""

    done: frozenset[int]
    failed: dict[int, str]
    unsent: dict[int, str]
    """Why the sender gave a transfer up."""
    refused: dict[int, str]
    """Why the receiver refused one."""
    broken: frozenset[str]
    """Checks that do not pass."""


def lines(folder: Path, kind: str) -> list[dict[str, object]]:
    """All events of a kind."""
    events = (
        json.loads(line)
        for path in sorted((folder / "events").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    return [event for event in events if event["kind"] == kind]


def reasons(folder: Path, kind: str) -> dict[int, str]:
    """Reason by request of all events of a kind."""
    return {int(str(event["req"])): str(event["reason"]) for event in lines(folder, kind)}


def damaged(folder: Path, program: str, files: dict[str, str], *overrides: str) -> Ended:
    """Runs ``hello`` with another lab program and judges it as every run is judged."""
    prepared = prepare("hello", overrides)
    plan, kernel = prepared.plan, lab_kernel()
    run = make_folder(folder)
    write_inputs(run, prepared.scenario.resolved_yaml(), plan, prepared.requests, {})
    shutil.copyfile(INSIDE / program, run / program)
    shutil.copytree(INSIDE / "damage", run / "damage")
    for name, text in files.items():
        (run / name).write_text(text, encoding="utf-8")
    outcome = boot(
        kernel,
        Orders(
            run, (f"/mnt/run/{program}",), plan.guest.memory_bytes, plan.guest.entropy_seed,
            plan.guest.start_ns,
        ),
        cache_root(),
    )  # fmt: skip
    assert outcome.status == 0, tail(run / "logs" / "guest.log", 40)
    finished = analyse(run, prepared.scenario)
    requests = finished.metrics["requests"]
    assert isinstance(requests, dict)
    failed = reasons(run, "request.failed")
    assert requests["failed"] == len(failed)
    assert requests["failed_by_reason"] == {
        reason: list(failed.values()).count(reason) for reason in set(failed.values())
    }
    return Ended(
        frozenset(int(str(event["req"])) for event in lines(run, "request.done")),
        failed,
        reasons(run, "transfer.failed"),
        reasons(run, "kv.refused"),
        frozenset(f.check for f in finished.verdict.findings if f.status.value != "pass"),
    )


def test_a_line_that_flips_bits_costs_retransmissions_and_nothing_else(
    testbed: Command, tmp_path: Path
) -> None:
    # netem completes the checksum before it flips a bit, so TCP drops the packet
    done = testbed(
        "run", "hello", "--json", "--out", str(tmp_path / "run"),
        "--set", "links.wan.segmentation=frame", "--set", "links.wan.corrupt=1 %",
    )  # fmt: skip
    assert done.status == 0, done.out + done.err
    assert done.metrics["requests"] == {
        "offered": 8, "completed": 8, "failed": 0, "failed_by_reason": {},
    }  # fmt: skip
    assert sum(int(str(event["retrans"])) for event in lines(tmp_path / "run", "tcp.info")) > 8


@pytest.mark.parametrize(
    ("verify", "offset", "reason"),
    [
        ("substance", 2_000, "a block is not what was sent"),
        ("all", 30_000, "padding"),
    ],
)
def test_flipped_bits_that_tcp_does_not_see_are_never_answered(
    tmp_path: Path, verify: str, offset: int, reason: str
) -> None:
    flips = {"offset": offset, "source_ports": [20_001, 20_004, 20_006]}
    ended = damaged(
        tmp_path / "run", "flipped_bits.py", {"flips.json": json.dumps(flips)}, f"verify={verify}"
    )
    assert len(ended.failed) >= 3
    assert ended.done.isdisjoint(ended.failed)
    assert ended.done | ended.failed.keys() == set(REQUESTS)
    assert ended.failed.keys() == ended.refused.keys()
    assert all(reason in why for why in ended.refused.values()), ended.refused
    assert ended.broken == set()  # failed and reported is a correct outcome


def test_a_sender_of_wrong_bytes_is_refused_by_name(tmp_path: Path) -> None:
    ended = damaged(tmp_path / "run", "damaged_run.py", {})
    assert ended.failed.keys() == {1, 2, 3, 4, 5, 6}
    assert ended.refused.keys() == {2, 3, 4, 5}  # the others never opened a transfer
    wanted = {
        1: "bad-checksum", 2: "a block is not what was sent", 3: "closing stamp",
        4: "closing stamp", 5: "cut within a transfer", 6: "epoch 0, newest is 0",
    }  # fmt: skip
    for request, reason in wanted.items():
        assert reason in ended.unsent[request], ended.unsent
    # request 7 came with right digests but in the wrong order: its tokens give it away
    assert ended.done == {0, 7}
    assert ended.broken == {"tokens-equal-reference"}
