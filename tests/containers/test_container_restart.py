"""Containers that are restarted, killed or changed while a run is on, by faults or behind its back.

Everything happens in the guest at exact virtual times, so what comes of it is the same twice.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.checks.finding import Status
from testbed.compose import Placement
from testbed.errors import ExitStatus
from testbed.lab.compose.engine import Engine
from testbed.lab.compose.inside import PLACEMENT
from testbed.lab.guest.boot import Orders, boot, tail
from testbed.lab.guest.kernel.cache import cache_root, kernel_path
from testbed.lab.hostledger import HostLedger
from testbed.run.containers import lent_engine
from testbed.run.execute import analyse, lab_kernel
from testbed.run.folder import make_folder, write_inputs
from testbed.run.prepare import prepare

pytestmark = pytest.mark.containers
PROGRAM = Path(__file__).parents[1] / "lab" / "inside" / "deeds_run.py"
S = 1_000_000_000
Event = dict[str, object]


@dataclass(frozen=True, slots=True)
class Aftermath:
    """How a run of ``hello`` ended in which something was done to its containers."""

    status: int
    failure: Event
    events: tuple[Event, ...]
    ledger: tuple[Event, ...]
    broken: tuple[str, ...]
    """Checks that decide and do not pass; empty where the run was not analysed."""
    sha256: str
    folder: Path

    def of(self, *kinds: str) -> list[Event]:
        """All events of the lab of these kinds."""
        return [event for event in self.events if event["kind"] in kinds]

    def at_s(self, kind: str) -> float:
        """Time of the only event of a kind."""
        (event,) = self.of(kind)
        return int(str(event["t"])) / S


Perform = Callable[..., Aftermath]


@pytest.fixture
def perform(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Perform:
    """Runs ``hello`` in containers while deeds are done, and judges it as every run is judged."""
    if kernel_path() is None:
        pytest.skip("no lab kernel is built on this machine: testbed kernel build")
    monkeypatch.setenv("DOCKER_HOST", engine.address)

    def call(name: str, *deeds: list[object], agent_bytes: int = 0) -> Aftermath:
        prepared = prepare("hello", lab="compose")
        run = make_folder(tmp_path / name)
        write_inputs(run, prepared.scenario.resolved_yaml(), prepared.plan, prepared.requests, {})
        (run / "deeds.json").write_text(json.dumps(deeds), encoding="utf-8")
        shutil.copyfile(PROGRAM, run / PROGRAM.name)
        guest, cache = prepared.plan.guest, cache_root()
        with (
            HostLedger(cache) as ledger,
            lent_engine(run, lab_kernel(), cache, ledger, print) as lent,
        ):
            if agent_bytes:
                limit_agents(run / PLACEMENT, agent_bytes)
            orders = Orders(
                run, (f"/mnt/run/{PROGRAM.name}",), guest.memory_bytes, guest.entropy_seed,
                guest.start_ns, stuck_after_s=600.0, engine=lent,
            )  # fmt: skip
            outcome = boot(lab_kernel(), orders, cache)
        failure = run / "failure.json"
        assert (outcome.status == 0) != failure.is_file(), tail(run / "logs" / "guest.log", 40)
        finished = None if outcome.status else analyse(run, prepared.scenario)
        return Aftermath(
            outcome.status,
            json.loads(failure.read_text(encoding="utf-8")) if outcome.status else {},
            lines(run / "events" / "lab.jsonl"),
            lines(run / "ledger.jsonl"),
            ()
            if finished is None
            else tuple(
                found.check
                for found in finished.verdict.findings
                if found.decides and found.status is not Status.PASS
            ),
            "" if finished is None else str(finished.metrics["timeline_sha256"]),
            run,
        )

    return call


def limit_agents(path: Path, size: int) -> None:
    """Other memory for every agent than they need."""
    placement = Placement.model_validate_json(path.read_text(encoding="utf-8"))
    changed = placement.model_copy(update={"agent_bytes": size})
    path.write_text(changed.model_dump_json(), encoding="utf-8")


def lines(path: Path) -> tuple[Event, ...]:
    """All of a file of JSON lines; none where it is not there."""
    if not path.is_file():
        return ()
    return tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def is_invalid(seen: Aftermath, kind: str, subject: str) -> None:
    """How every run ends whose lab was not left alone."""
    assert seen.status == ExitStatus.INVALID
    assert (seen.failure["kind"], seen.failure["subject"]) == (kind, subject)
    undone = {(one["kind"], one["name"]) for one in seen.ledger if one["action"] == "undo"}
    made = {(one["kind"], one["name"]) for one in seen.ledger if one["action"] == "acquire"}
    assert made == undone


DEEDS: list[list[object]] = [
    [500_000_000, "restart_behind", "wan1"],
    [1_000_000_000, "pause", "p1"],
    [1_300_000_000, "resume", "p1"],
    [1_500_000_000, "reshape", "wan2", 20_000_000, 0.5],
    [2_000_000_000, "restart", "tor-a"],
    [2_500_000_000, "restore", "wan2"],
    [3_000_000_000, "cut", "wan2"],
    [3_200_000_000, "mend", "wan2"],
    [3_500_000_000, "disconnect", "md1"],
    [3_700_000_000, "connect", "md1"],
    [4_000_000_000, "exceed_memory", "p1"],
    [4_400_000_000, "kill", "fab-b"],
    [4_500_000_000, "revive", "fab-b"],
    [4_900_000_000, "reshape", "wan1", 30_000_000, 1.0],
    [5_000_000_000, "restart", "wan1"],
    [5_500_000_000, "restore", "wan1"],
]


def test_what_is_undone_or_comes_back_as_planned_leaves_a_sound_run(perform: Perform) -> None:
    seen = perform("first", *DEEDS)
    assert seen.failure == {}
    assert seen.broken == ()
    faults = [(e["kind"], e["fault"], e["subject"]) for e in seen.of("fault.began", "fault.ended")]
    assert faults == [
        ("fault.began", "pause", "p1"), ("fault.ended", "pause", "p1"),
        ("fault.began", "reshape", "wan2"), ("fault.began", "restart", "tor-a"),
        ("fault.ended", "reshape", "wan2"),
        ("fault.began", "cut", "wan2"), ("fault.ended", "cut", "wan2"),
        ("fault.began", "disconnect", "md1"), ("fault.ended", "disconnect", "md1"),
        ("fault.began", "kill", "fab-b"), ("fault.ended", "kill", "fab-b"),
        ("fault.began", "reshape", "wan1"), ("fault.began", "restart", "wan1"),
        ("fault.ended", "reshape", "wan1"),
    ]  # fmt: skip
    lost = [(e["peer"], e["wanted"]) for e in seen.of("node.lost")]
    assert lost == [("wan1", False), ("tor-a", True), ("fab-b", True), ("wan1", True)]
    back = [(e["peer"], e["anew"]) for e in seen.of("node.back")]
    assert back == [("wan1", False), ("tor-a", False), ("fab-b", False), ("wan1", True)]
    assert all(int(str(e["away_ns"])) < S for e in seen.of("node.back"))
    killed, said = json.loads((seen.folder / "exceeded.json").read_text(encoding="utf-8"))
    assert killed == 137, said
    stands_still(seen)
    passes_nothing(seen)
    again = perform("again", *DEEDS)
    assert again.sha256 == seen.sha256


def stands_still(seen: Aftermath) -> None:
    """While it was paused, P recorded nothing; before and after it did."""
    times = [int(str(e["t"])) / S for e in lines(seen.folder / "events" / "p1.jsonl")]
    paused = int(str(seen.of("fault.began")[0]["t"])) / S
    assert 1.0 < paused < 1.1
    assert [t for t in times if paused < t < 1.3] == []
    assert min(times) < 1.0 < 1.3 < max(times)


def passes_nothing(seen: Aftermath) -> None:
    """While it was cut, wan2 passed nothing into its delay stages; before and after it did."""
    carried = [
        (int(str(e["t"])) / S, int(str(e["size"])))
        for e in seen.of("link.sample")
        if e["link"] == "wan2"
    ]
    assert sum(size for t, size in carried if 3.05 < t <= 3.2) == 0
    assert sum(size for t, size in carried if t <= 3.0) > 0
    assert sum(size for t, size in carried if t > 3.3) > 0


@pytest.mark.parametrize(
    ("deed", "subject", "lost"),
    [
        (["remove_qdisc", "wan1", "wan1-x"], "wan1", "wan1 forward wan1-x: qdisc is absent"),
        (["kill_behind", "wan2"], "wan2", "status 137 1.000 s after the barrier at the latest"),
        (["lower", "tor-b", "tor-b-wan1"], "tor-b", "lost: device"),
        (["disconnect_behind", "md1"], "md1", "lost: "),
    ],
)
def test_lost_shaping_ends_the_run_within_a_second(
    perform: Perform, deed: list[object], subject: str, lost: str
) -> None:
    seen = perform("run", [950_000_000, *deed])
    is_invalid(seen, "FidelityError", subject)
    assert lost in str(seen.failure["cause"])
    assert 0.95 < seen.at_s("shaping.lost") <= 1.96


def test_an_agent_that_is_killed_behind_its_back_is_reported(perform: Perform) -> None:
    seen = perform("run", [950_000_000, "kill_behind", "p1"])
    is_invalid(seen, "AgentError", "p1")
    assert "its container ended with status 137" in str(seen.failure["cause"])
    assert [(e["peer"], e["wanted"]) for e in seen.of("node.lost")] == [("p1", False)]


def test_a_fault_may_kill_an_agent_and_the_run_takes_place(perform: Perform) -> None:
    seen = perform("run", [2_000_000_000, "kill", "p1"])
    assert seen.failure == {}
    assert [(e["peer"], e["wanted"]) for e in seen.of("node.lost")] == [("p1", True)]
    # what P had not yet written of its record ended with it
    assert {"agents-stopped"} <= set(seen.broken) <= {"agents-stopped", "transfers-verified"}


def test_agents_beyond_their_memory_are_killed_and_reported(perform: Perform) -> None:
    seen = perform("run", agent_bytes=96 * 2**20)
    is_invalid(seen, "AgentError", str(seen.failure["subject"]))
    assert seen.failure["subject"] in ("c1", "p1", "md1")
    assert "went beyond its memory limit of 96 MiB" in str(seen.failure["cause"])
    assert not seen.events, "it never began"
