"""Runs in the guest: the lab program, in which agents are killed at exact virtual times.

``deaths.json`` lists them as ``[[node, nanoseconds after the barrier, signal], …]``. SIGKILL:
no handler, no farewell; the kernel closes what they had open. SIGSTOP: the kernel goes on
acknowledging for a process that does nothing any more; it is killed when the run ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.contract.role import Role
from testbed.lab.crew import Crew
from testbed.run.inside import let_agents_work, main
from testbed_agents.event_loop import ExactTimer

RUN = Path("/mnt/run")
LINGER_NS = 5_000_000_000
"""How long the others are watched after a client was killed."""


def deaths() -> list[tuple[str, int, signal.Signals]]:
    """Who dies, when and how."""
    listed = json.loads((RUN / "deaths.json").read_text(encoding="utf-8"))
    return [(str(node), int(at_ns), signal.Signals(how)) for node, at_ns, how in listed]


def process_of(node: str) -> int:
    """The process of an agent, by the name that the zygote gave it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "comm").read_text().strip() == node:
            return int(entry.name)
    raise LookupError(f"no process of {node}")


def kill_at(node: str, monotonic_ns: int, how: signal.Signals) -> None:
    """Waits for the time, then sends the signal."""
    timer = ExactTimer()
    timer.arm(monotonic_ns)
    select.select([timer.fd], [], [])
    timer.close()
    os.kill(process_of(node), how)


class MortalCrew(Crew):
    """A crew some of whose members are to die."""

    def wait_ready(self, mark: Mark) -> None:
        """Lets death wait for its time, too."""
        super().wait_ready(mark)
        plan = Plan.model_validate_json((RUN / "plan.json").read_text(encoding="utf-8"))
        offset = time.monotonic_ns() - time.time_ns() + plan.guest.barrier_ns
        clients = {agent.node for agent in plan.agents if agent.role is Role.CLIENT}
        self._until_ns = 0
        for node, at_ns, how in deaths():
            if node in clients:
                self._until_ns = plan.guest.barrier_ns + at_ns + LINGER_NS
            wait = threading.Thread(target=kill_at, args=(node, offset + at_ns, how), daemon=True)
            wait.start()

    def clients_ended(self) -> bool:
        """Also waits for what follows the death of a client."""
        return super().clients_ended() and time.time_ns() >= self._until_ns

    def stop(self) -> None:
        """Ends those first that hear nothing."""
        for node, _, how in deaths():
            if how is signal.SIGSTOP:
                os.kill(process_of(node), signal.SIGKILL)
        super().stop()

    def _note(self, line: dict[str, object]) -> None:
        node = str(line.get("exit"))
        if line.get("status") == -signal.SIGKILL and node in {node for node, _, _ in deaths()}:
            self.roll.ended[node] = -signal.SIGKILL
        else:
            super()._note(line)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(("/mnt/run/wholly", os.environ["PYTHONPATH"]))
    sys.exit(main("/mnt/run", partial(let_agents_work, hire=MortalCrew)))
