"""Faults of the Mininet lab, and shaping that is lost while a run is on, at exact virtual times."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.checks.finding import Status
from testbed.errors import ExitStatus
from testbed.lab.guest.boot import Orders, boot, tail
from testbed.lab.guest.kernel.cache import cache_root
from testbed.run.execute import analyse, lab_kernel
from testbed.run.folder import make_folder, write_inputs
from testbed.run.prepare import prepare

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]
PROGRAM = Path(__file__).with_name("inside") / "deeds_run.py"
Event = dict[str, object]


@dataclass(frozen=True, slots=True)
class Aftermath:
    """How a run of ``hello`` ended in which something was done to its lab."""

    status: int
    failure: Event
    events: tuple[Event, ...]
    broken: tuple[str, ...]
    sha256: str

    def of(self, *kinds: str) -> list[Event]:
        """All events of the lab of these kinds."""
        return [event for event in self.events if event["kind"] in kinds]


def after(run: Path, *deeds: list[object]) -> Aftermath:
    """Runs ``hello`` while deeds are done, and judges it as every run is judged."""
    prepared = prepare("hello", lab="mininet")
    make_folder(run)
    write_inputs(run, prepared.scenario.resolved_yaml(), prepared.plan, prepared.requests, {})
    (run / "deeds.json").write_text(json.dumps(deeds), encoding="utf-8")
    shutil.copyfile(PROGRAM, run / PROGRAM.name)
    guest = prepared.plan.guest
    program = (f"/mnt/run/{PROGRAM.name}",)
    outcome = boot(
        lab_kernel(),
        Orders(run, program, guest.memory_bytes, guest.entropy_seed, guest.start_ns),
        cache_root(),
    )
    failure = run / "failure.json"
    assert (outcome.status == 0) != failure.is_file(), tail(run / "logs" / "guest.log", 40)
    events = run / "events" / "lab.jsonl"
    lines = tuple(json.loads(line) for line in events.read_text(encoding="utf-8").splitlines())
    if outcome.status:
        return Aftermath(outcome.status, json.loads(failure.read_text("utf-8")), lines, (), "")
    finished = analyse(run, prepared.scenario)
    broken = tuple(
        found.check
        for found in finished.verdict.findings
        if found.decides and found.status is not Status.PASS
    )
    return Aftermath(0, {}, lines, broken, str(finished.metrics["timeline_sha256"]))


DEEDS: list[list[object]] = [
    [1_000_000_000, "pause", "p1"],
    [1_300_000_000, "resume", "p1"],
    [1_500_000_000, "reshape", "wan2", 20_000_000, 0.5],
    [2_500_000_000, "restore", "wan2"],
    [3_000_000_000, "cut", "wan2"],
    [3_200_000_000, "mend", "wan2"],
    [3_500_000_000, "disconnect", "md1"],
    [3_700_000_000, "connect", "md1"],
    [9_200_000_000, "cut", "wan1"],
]
"""The last one is not undone: leaving does it."""


def test_faults_are_verified_and_undone_and_the_run_is_sound(tmp_path: Path) -> None:
    seen = after(tmp_path / "first", *DEEDS)
    assert seen.failure == {}
    assert seen.broken == ()
    faults = [(e["kind"], e["fault"], e["subject"]) for e in seen.of("fault.began", "fault.ended")]
    pairs = [("pause", "p1"), ("reshape", "wan2"), ("cut", "wan2"), ("disconnect", "md1"),
             ("cut", "wan1")]  # fmt: skip
    assert faults == [(kind, *pair) for pair in pairs for kind in ("fault.began", "fault.ended")]
    again = after(tmp_path / "again", *DEEDS)
    assert again.sha256 == seen.sha256


@pytest.mark.parametrize(
    ("deed", "subject", "lost"),
    [
        (["remove_qdisc", "wan1", "wan1-x"], "wan1", "wan1 forward wan1-x: qdisc is absent"),
        (["lower", "wan2", "wan2-y"], "wan2", "device is down instead of up"),
        (["lower", "tor-b", "tor-b-wan1"], "tor-b", "lost: device tor-b-wan1 up"),
    ],
)
def test_lost_shaping_ends_the_run_within_a_second(
    tmp_path: Path, deed: list[object], subject: str, lost: str
) -> None:
    seen = after(tmp_path / "run", [950_000_000, *deed])
    assert seen.status == ExitStatus.INVALID
    assert (seen.failure["kind"], seen.failure["subject"]) == ("FidelityError", subject)
    assert lost in str(seen.failure["cause"])
    (event,) = seen.of("shaping.lost")
    assert 950_000_000 < int(str(event["t"])) < 1_950_000_000


@pytest.mark.parametrize("deed", [["restart", "p1"], ["kill", "wan1"], ["pause", "nobody"]])
def test_what_this_lab_cannot_do_is_refused(tmp_path: Path, deed: list[object]) -> None:
    seen = after(tmp_path / "run", [500_000_000, *deed])
    assert seen.status == ExitStatus.INVALID
    assert (seen.failure["kind"], seen.failure["subject"]) == ("LabError", deed[1])
