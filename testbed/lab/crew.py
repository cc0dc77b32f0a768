"""The agents of a run: started by one zygote, watched, ended."""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.errors import AgentError, LabError
from testbed.lab.ledger import Ledger
from testbed.lab.program import end_process
from testbed.lab.protocol import Lab
from testbed.lab.roll import Roll

_STOP_S = 10.0
_LOAD_S = 180.0
"""Real seconds for loading models and starting agents."""
_LEAD_S, _LEAD_EACH_S = 0.5, 0.05
"""Real seconds between telling the barrier's time and the barrier, and more of them an agent."""
_BARRIER = struct.Struct("=q")


class Crew:
    """All agents of a plan. Use as a context manager: leaving it ends every agent."""

    def __init__(self, plan: Plan, run: Path, lab: Lab, ledger: Ledger) -> None:
        namespaces = lab.paths()
        self._plan = plan
        self._run = run
        self.barrier_ns = plan.guest.barrier_ns
        self._real = plan.clock == "real"
        self.roll = Roll(plan)
        self._waiting = set(self.roll.nodes)
        self._buffer = b""
        places = []
        folder = run / "agents"
        folder.mkdir(exist_ok=True)
        for agent in plan.agents:
            config = folder / f"{agent.node}.json"
            config.write_text(agent.model_dump_json(indent=1), encoding="utf-8")
            places.append(
                {
                    "config": str(config),
                    "namespace": namespaces[agent.node],
                    "log": str(run / "logs" / f"{agent.node}.log"),
                }
            )
        listing = folder / "placements.json"
        listing.write_text(json.dumps(places), encoding="utf-8")
        ledger.acquire("process", "zygote and agents", self._end)
        shared: tuple[int, ...] = ()
        self._teller: int | None = None
        if self._real:
            reader, self._teller = os.pipe()
            shared = (reader,)
        self._zygote = subprocess.Popen(
            [
                sys.executable, "-B", "-m", "testbed_agents.zygote", str(listing), plan.clock,
                *map(str, shared),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(run / "logs" / "zygote.log").open("ab"),
            bufsize=0,
            pass_fds=shared,
        )  # fmt: skip
        for descriptor in shared:
            os.close(descriptor)

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def wait_ready(self, mark: Mark) -> None:
        """Returns when every agent waits at the barrier.

        Raises:
            AgentError: an agent died first, or the barrier's time came; under a real clock,
                which sets the barrier when all are ready, it took too long.
        """
        deadline = self.barrier_ns
        if self._real:
            deadline = time.time_ns() + int(_LOAD_S * 1e9)
        while self._waiting:
            if time.time_ns() >= deadline:
                raise AgentError(
                    "start the agents", ", ".join(sorted(self._waiting)),
                    f"not ready after {_LOAD_S:.0f} s" if self._real
                    else "not ready when the barrier's time came",
                )  # fmt: skip
            self.watch(until_ns=deadline)
            mark.touch(time.time_ns())
        if self._teller is not None:
            agents = len(self._plan.agents)
            self.barrier_ns = time.time_ns() + int((_LEAD_S + _LEAD_EACH_S * agents) * 1e9)
            os.write(self._teller, _BARRIER.pack(self.barrier_ns) * agents)

    def watch(self, until_ns: int, also: int | None = None) -> None:
        """Handles what agents report, until something came or the time is reached.

        Raises:
            AgentError: an agent ended with a failure, or before it was told to.
        """
        pipe = self._zygote.stdout
        if pipe is None:
            raise LabError("watch the agents", "zygote", "it has no pipe")
        left = max(0, until_ns - time.time_ns()) / 1e9
        ready, _, _ = select.select([pipe, *(() if also is None else (also,))], [], [], left)
        if pipe not in ready:
            return
        data = os.read(pipe.fileno(), 65_536)
        if not data:
            raise AgentError(
                "watch the agents", "zygote", f"it ended ({self._zygote.wait()})",
                "see logs/zygote.log",
            )  # fmt: skip
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._note(json.loads(line))

    def _note(self, line: dict[str, object]) -> None:
        if "ready" in line:
            self._waiting.discard(str(line["ready"]))
            return
        self.roll.end(str(line["exit"]), int(str(line["status"])))

    def excuse(self, node: str) -> None:
        """See ``Agents``."""
        self.roll.excused.add(node)

    def fell(self, node: str, how: str) -> None:
        """See ``Agents``: the zygote reports every end, so nobody has to."""

    def clients_ended(self) -> bool:
        """Whether every client has ended by itself."""
        return self.roll.clients_ended()

    def stop(self) -> None:
        """Asks every agent to end and waits for it.

        Raises:
            AgentError: an agent did not end in time or ended with a failure.
        """
        self.roll.stopping = True
        self._zygote.send_signal(signal.SIGTERM)
        deadline = time.time_ns() + int(_STOP_S * 1e9)
        while late := self.roll.alive():
            if time.time_ns() >= deadline:
                raise AgentError(
                    "stop the agents", ", ".join(sorted(late)), f"alive after {_STOP_S} s"
                )
            self.watch(until_ns=deadline)
        self._zygote.wait()

    def _end(self) -> None:
        end_process(self._zygote, _STOP_S)
        if self._zygote.stdout is not None:
            self._zygote.stdout.close()
        if self._teller is not None:
            os.close(self._teller)
            self._teller = None
