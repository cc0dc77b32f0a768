"""All agents of a plan as processes of this host on loopback, some of which are killed.

Started as a program, so that it forks before any thread runs::

    python -m tests.fakes.loopback_crew RUN SPAN_S NODE=SECONDS …

Agents are forked as the zygote does, without namespaces and without giving up privileges;
SIGKILL comes at the given times after the barrier. Only a client lives on to its first answer:
one without any leaves nothing to compare, however slow this host is. Prints the exit status
of each as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

from testbed.contract.agent import AgentConfig
from testbed.contract.event import EventLog, Kind
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed_agents.mains import MAINS
from testbed_agents.model import preload
from testbed_agents.runtime import run_agent

_LOOK_S = 0.002
"""How exactly deaths come."""


def start(config: AgentConfig, log: Path) -> int:
    """Forks one agent; returns its process."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        out = os.open(log, os.O_WRONLY | os.O_CREAT, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        status = run_agent(config, MAINS[config.role], lambda: None)
    finally:
        sys.stderr.flush()
        os._exit(status)


def answered(run: Path, client: str) -> bool:
    """Whether a client has written down that a request is done."""
    events = run / "events" / f"{client}.jsonl"
    return events.exists() and f'"{Kind.REQUEST_DONE.value}"' in events.read_text(encoding="utf-8")


def play(run: Path, span_s: float, deaths: dict[str, float]) -> dict[str, int]:
    """Exit status by agent; who is alive after ``span_s`` seconds is killed, too."""
    plan = Plan.model_validate_json((run / "plan.json").read_text(encoding="utf-8"))
    preload(plan.agents[0].model)
    EventLog.__init__.__defaults__ = (1,)  # written at once: the killed have told all they did
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    barrier = time.time_ns() + 3_000_000_000
    nodes: dict[int, str] = {}
    for agent in plan.agents:
        config = agent.model_copy(update={"barrier_ns": barrier})
        nodes[start(config, run / "logs" / f"{agent.node}.log")] = agent.node
    processes = {node: process for process, node in nodes.items()}
    clients = {agent.node for agent in plan.agents if agent.role is Role.CLIENT}
    doomed = dict(deaths)
    ended: dict[str, int] = {}
    stopping = False
    while len(ended) < len(nodes):
        now_s = (time.time_ns() - barrier) / 1e9
        for node in [node for node, at_s in doomed.items() if at_s <= now_s]:
            if node in clients and not answered(run, node):
                continue
            del doomed[node]
            os.kill(processes[node], signal.SIGKILL)
        if not stopping and (clients <= ended.keys() - deaths.keys() or now_s > span_s):
            stopping = True
            for node in processes.keys() - ended.keys():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(processes[node], signal.SIGTERM)
        if now_s > span_s + 5:
            for node in processes.keys() - ended.keys():
                os.kill(processes[node], signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK_S)
        while len(ended) < len(nodes):
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            ended[nodes[process]] = os.waitstatus_to_exitcode(status)
    return ended


if __name__ == "__main__":
    doom = dict(argument.split("=") for argument in sys.argv[3:])
    print(
        json.dumps(
            play(
                Path(sys.argv[1]), float(sys.argv[2]),
                {node: float(at_s) for node, at_s in doom.items()},
            )
        )
    )  # fmt: skip
