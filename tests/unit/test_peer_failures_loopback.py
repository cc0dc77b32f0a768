"""Real agents on loopback, killed at random: answers are identical or absent, nothing leaks.

Caches are so small that they evict, requests arrive at random, and each agent is a process
that SIGKILL ends wherever it is. The survivors close their caches: a lock or a reservation
that is left makes an agent exit with a failure, as a second release of one does.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.checks import CHECKS
from testbed.checks.case import Case, read_case
from testbed.checks.finding import Status
from testbed.contract.agent import AgentConfig, Hardware, Request, Window
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.run.execute import compute_reference
from testbed.run.folder import make_folder, write_inputs
from testbed.run.prepare import prepare
from tests.fakes.host_tcp import congestion

MS = 1_000_000
SPAN_S = {True: 4.0, False: 12.0}
"""How long agents are let to work: without the client nobody says when it is over."""
ANYWAY = {"agents-stopped", "barrier-passed", "links-faithful", "payload-sampled",
          "drops-explained", "littles-law", "time-ordered", "record-complete",
          "on-time"}  # fmt: skip
"""Checks of the lab, which is not here, and of records that a killed agent cut short."""


def hurried(agent: AgentConfig, address: dict[str, str], run: Path) -> AgentConfig:
    """The agent on loopback, with hardware that takes milliseconds."""
    peers = tuple(peer.model_copy(update={"address": address[peer.name]}) for peer in agent.peers)
    hardware = Hardware(
        name="hurried", source="this test", prefill_base_s=0.002, prefill_token_s=1e-5,
        prefill_attention_s=0, decode_base_s=0.003, decode_sequence_s=0, decode_context_s=0,
        max_batch=8,
    )  # fmt: skip
    tcp = agent.tcp.model_copy(
        update={
            "congestion": congestion(),
            "send_buffer": 65_536,
            "receive_buffer": 65_536,
            "receive_low_water": 8_192,
        }
    )
    assert agent.serving is not None
    block = agent.shape.block_tokens * agent.shape.bytes_per_token
    caches = agent.serving.caches.model_copy(
        update={"prefill_bytes": 80 * block, "decode_bytes": 70 * block}
    )
    return agent.model_copy(
        update={
            "address": address[agent.node], "peers": peers, "hardware": hardware, "tcp": tcp,
            "window": Window(warm_up_ns=0, measure_ns=1000 * MS, drain_ns=9000 * MS),
            "events": str(run / "events" / f"{agent.node}.jsonl"),
            "workload": str(run / "workload.jsonl") if agent.role is Role.CLIENT else None,
            "serving": agent.serving.model_copy(update={"caches": caches}),
        }
    )  # fmt: skip


def written(run: Path, seed: int) -> Plan:
    """``pdd-hello`` on addresses of its own, its requests within a second."""
    prepared = prepare("pdd-hello")
    draw = random.Random(seed)
    net = f"127.{1 + os.getpid() % 250}.{1 + seed % 250}"
    nodes = [agent.node for agent in prepared.plan.agents]
    address = {node: f"{net}.{number}" for number, node in enumerate(nodes, 1)}
    agents = tuple(hurried(agent, address, run) for agent in prepared.plan.agents)
    plan = prepared.plan.model_copy(update={"agents": agents, "clock": "real"})
    times = sorted(draw.randrange(0, 900 * MS) for _ in prepared.requests)
    requests: list[Request] = [
        request.model_copy(update={"at_ns": at_ns})
        for request, at_ns in zip(prepared.requests, times, strict=True)
    ]
    write_inputs(make_folder(run), prepared.scenario.resolved_yaml(), plan, requests, {})
    (run / "logs" / "progress").mkdir()
    return plan


def played(run: Path, deaths: dict[str, float]) -> dict[str, int]:
    """Exit status of every agent."""
    span_s = SPAN_S["c1" in deaths]
    doom = [f"{node}={at_s}" for node, at_s in deaths.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes.loopback_crew", str(run), str(span_s), *doom],
        capture_output=True, text=True, timeout=60, check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((".", "agents"))},
    )  # fmt: skip
    ended: dict[str, int] = json.loads(done.stdout)
    return ended


def judged(run: Path) -> tuple[Case, dict[str, tuple[str, ...]]]:
    """The record, and what the checks of the serving plane find wrong in it."""
    compute_reference(run)
    case = read_case(run)
    findings = [check.examine(case) for check in CHECKS if check.name not in ANYWAY]
    return case, {f.check: f.violations for f in findings if f.status is not Status.PASS}


@pytest.mark.parametrize(
    ("seed", "dead"),
    [*enumerate([("p1",), ("r1",), ("md1",), ("md2", "p2"), ("c1",)])],
)
def test_whoever_is_killed_answers_are_identical_or_absent(
    tmp_path: Path, seed: int, dead: tuple[str, ...]
) -> None:
    draw = random.Random(1000 + seed)
    run = tmp_path / "run"
    written(run, seed)
    deaths = {node: draw.uniform(0.05, 1.0) for node in dead}
    ended = played(run, deaths)
    logs = {node: (run / "logs" / f"{node}.log").read_text() for node in ended}
    survivors = {node: status for node, status in ended.items() if node not in dead}
    assert set(survivors.values()) == {0}, (survivors, logs)
    assert all(ended[node] == -signal.SIGKILL for node in dead)
    case, broken = judged(run)
    if "c1" in dead:
        broken.pop("answered-once", None)
    assert not broken, broken
    for closed in case.history.plane.closed:
        assert (closed.locks, closed.reservations) == (0, 0)
    if "c1" not in dead:
        failed = {req for req, story in case.history.stories.items() if story.failed}
        assert not failed, failed
