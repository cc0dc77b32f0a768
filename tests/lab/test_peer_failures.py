"""A peer that is killed in the lab: every request is answered like one engine, or fails by name.

What nobody needs any more is given back: caches of the survivors close without a lock or a
reservation, and nobody is still at work when the run ends.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.checks.finding import Status
from testbed.contract.serving import Serving
from testbed.lab.guest.boot import Orders, boot, tail
from testbed.lab.guest.kernel.cache import cache_root
from testbed.run.execute import analyse, lab_kernel
from testbed.run.folder import make_folder, write_inputs
from testbed.run.prepare import prepare

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

INSIDE = Path(__file__).with_name("inside")
REQUESTS = frozenset(range(16))
DEADLINE_NS = 34_000_000_000


@dataclass(frozen=True, slots=True)
class Aftermath:
    """How the sixteen requests of ``pdd-hello`` ended, and what was found."""

    events: tuple[dict[str, object], ...]
    done: frozenset[int]
    failed: dict[int, str]
    broken: dict[str, tuple[str, ...]]
    """Checks that decide and do not pass, with what they found."""
    sha256: str

    def of(self, kind: str) -> list[dict[str, object]]:
        """All events of a kind."""
        return [event for event in self.events if event["kind"] == kind]


def after_death_of(
    folder: Path, node: str, at_s: float, *overrides: str, how: signal.Signals = signal.SIGKILL
) -> Aftermath:
    """Runs ``pdd-hello`` in which ``node`` is killed, and judges it as every run is judged."""
    return aftermath(folder, [[node, round(at_s * 1e9), int(how)]], overrides)


def with_small_main(folder: Path, *overrides: str) -> Aftermath:
    """The same where nobody dies, and the memory of ``md1`` is too small for any prompt."""
    return aftermath(folder, [], overrides, {"md1": 10_000_000})


def aftermath(
    folder: Path, deaths: list[list[object]], overrides: tuple[str, ...],
    decode_bytes: Mapping[str, int] | None = None,
) -> Aftermath:  # fmt: skip
    """Runs ``pdd-hello``; ``decode_bytes`` is the device memory of single MDs."""
    prepared = prepare("pdd-hello", overrides)
    sizes = decode_bytes or {}
    agents = tuple(
        agent.model_copy(update={"serving": sized(agent.serving, sizes[agent.node])})
        if agent.node in sizes
        else agent
        for agent in prepared.plan.agents
    )
    plan = prepared.plan.model_copy(update={"agents": agents})
    run = make_folder(folder)
    write_inputs(run, prepared.scenario.resolved_yaml(), plan, prepared.requests, {})
    shutil.copyfile(INSIDE / "deadly_run.py", run / "deadly_run.py")
    shutil.copytree(INSIDE / "wholly", run / "wholly")
    (run / "deaths.json").write_text(json.dumps(deaths), encoding="utf-8")
    outcome = boot(
        lab_kernel(),
        Orders(
            run, ("/mnt/run/deadly_run.py",), plan.guest.memory_bytes, plan.guest.entropy_seed,
            plan.guest.start_ns,
        ),
        cache_root(),
    )  # fmt: skip
    assert outcome.status == 0, tail(run / "logs" / "guest.log", 40)
    finished = analyse(run, prepared.scenario)
    events = tuple(
        json.loads(line)
        for path in sorted((run / "events").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    return Aftermath(
        events,
        frozenset(e["req"] for e in events if e["kind"] == "request.done"),
        {e["req"]: e["reason"] for e in events if e["kind"] == "request.failed"},
        {
            f.check: f.violations
            for f in finished.verdict.findings
            if f.decides and f.status is not Status.PASS
        },
        str(finished.metrics["timeline_sha256"]),
    )


def sized(serving: Serving | None, decode_bytes: int) -> Serving:
    """The same with other device memory at MD."""
    assert serving is not None
    memory = serving.memory.model_copy(update={"decode_bytes": decode_bytes})
    return serving.model_copy(update={"memory": memory})


def is_sound(seen: Aftermath, dead: str) -> None:
    """What holds after any death."""
    lost = [event["peer"] for event in seen.of("instance.lost")]
    assert lost == [dead]
    assert set(seen.broken) == {"agents-stopped"}, seen.broken
    assert len(seen.broken["agents-stopped"]) == 1
    assert dead in seen.broken["agents-stopped"][0]
    closed = {event["node"]: event for event in seen.of("cache.closed")}
    assert closed.keys() == {"p1", "p2", "md1", "md2"} - {dead}
    for event in closed.values():
        assert (event["locks"], event["reservations"], event["under_way"]) == (0, 0, 0), event


@pytest.mark.parametrize(
    ("node", "at_s", "what"),
    [
        ("p1", 10.2, "within transfers, with others queued"),
        ("r1", 11.0, "between eager tokens"),
        ("md1", 11.0, "within transfers to it"),
        ("md1", 12.5, "behind a takeover"),
        ("r1", 12.36, "within a handoff"),
    ],
)
def test_whoever_dies_every_request_is_answered_by_others(
    tmp_path: Path, node: str, at_s: float, what: str
) -> None:
    seen = after_death_of(tmp_path / "run", node, at_s)
    is_sound(seen, node)
    assert seen.done == REQUESTS, (what, seen.failed)
    assert all(int(str(event["t"])) < DEADLINE_NS for event in seen.of("request.done"))


def test_who_hangs_is_lost_after_its_silence(tmp_path: Path) -> None:
    seen = after_death_of(tmp_path / "run", "md1", 8.0, how=signal.SIGSTOP)
    is_sound(seen, "md1")
    assert seen.done == REQUESTS, seen.failed
    (lost,) = seen.of("instance.lost")
    assert 16_000_000_000 < int(str(lost["t"])) < 21_000_000_000


def test_the_same_death_has_the_same_timeline(tmp_path: Path) -> None:
    first, second = (after_death_of(tmp_path / name, "p1", 10.2) for name in ("a", "b"))
    assert first.sha256 == second.sha256


def test_without_any_prefill_left_requests_fail_by_name(tmp_path: Path) -> None:
    seen = after_death_of(tmp_path / "run", "p1", 10.2, "topology.parameters.prefill=1")
    assert seen.done | seen.failed.keys() == REQUESTS
    assert seen.failed
    assert set(seen.failed.values()) <= {"prefill-lost"}, seen.failed


def test_a_client_that_dies_leaves_nothing_behind(tmp_path: Path) -> None:
    seen = after_death_of(tmp_path / "run", "c1", 11.0)
    closed = {event["node"]: event for event in seen.of("cache.closed")}
    assert closed.keys() == {"p1", "p2", "md1", "md2"}
    for event in closed.values():
        assert (event["locks"], event["reservations"], event["under_way"]) == (0, 0, 0), event
    last = max(int(str(event["t"])) for event in seen.of("transfer.failed"))
    assert last < 11_100_000_000  # transfers are cut, not finished


def answered_by_the_other_main(seen: Aftermath) -> None:
    """What holds where ``md1`` has no memory for anything and ``md2`` has."""
    assert seen.broken == {}
    assert seen.done == REQUESTS, seen.failed
    assert all(int(str(event["t"])) < DEADLINE_NS for event in seen.of("request.done"))
    retried = seen.of("request.retried")
    assert retried
    assert {event["reason"] for event in retried} == {"kv-memory-too-small"}
    again = [event for event in seen.of("request.routed") if "attempt" in event]
    assert {event["decode"] for event in again} == {"md2"}
    assert len(again) == len(retried)
    assert "md1" not in {event["source"] for event in seen.of("token")}
    for event in seen.of("cache.closed"):
        assert (event["locks"], event["reservations"], event["under_way"]) == (0, 0, 0), event
    assert "md1" not in {event["peer"] for event in seen.of("transfer.start")}


def test_an_md_without_memory_is_replaced_by_one_that_has_some(tmp_path: Path) -> None:
    seen = with_small_main(tmp_path / "run", "serving.pipeline={kind: direct}")
    answered_by_the_other_main(seen)


def test_rld_goes_on_within_its_bounds_and_then_another_md_answers(tmp_path: Path) -> None:
    bounds = ("serving.handoff.most=8 tokens", "serving.handoff.least=8 tokens")
    seen = with_small_main(tmp_path / "run", *bounds)
    answered_by_the_other_main(seen)
    retried = {event["req"] for event in seen.of("request.retried")}
    eager = [e for e in seen.of("token") if e["source"] == "r1" and "attempt" not in e]
    alone = {e["req"] for e in eager} & retried
    assert alone  # through RLD, which went on without MD
    for req in alone:
        assert [e["pos"] for e in eager if e["req"] == req] == list(range(8))
        rest = [e for e in seen.of("token") if e["req"] == req and e not in eager]
        assert [e["pos"] for e in rest] == list(range(8, 48))
        assert {e["source"] for e in rest} == {"md2"}
