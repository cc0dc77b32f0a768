"""The stages of a run of containers on their own, as who leads sees and tells them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from testbed.contract.meeting import BARRIER, LOAD, MEASURE, STOP, Meeting, Said, drain
from testbed.contract.plan import Plan
from testbed.contract.role import NodeKind
from testbed.errors import ExitStatus, HostError, LabError
from testbed.lab.roll import Roll
from testbed.run.up.record import ROWS, wires_of

_START_S, _MEASURE_S, _LOAD_S, _STOP_S = 300, 120, 300, 30
_LEAD_NS = 4 * 10**9
"""From telling the barrier's time to the barrier: Docker begins one more health check meanwhile."""
_STEP_S = 1.0


class Stages:
    """Each call returns when the stage is over, and raises where a container failed.

    Attributes:
        barrier_ns: CLOCK_REALTIME of the barrier; 0 before it was told.
    """

    def __init__(self, run: Path, plan: Plan) -> None:
        self.barrier_ns = 0
        self._meeting = Meeting(run)
        self._plan = plan
        self._roll = Roll(plan)
        self._fabric = frozenset(
            node.name for node in plan.network.nodes if node.kind is not NodeKind.AGENT
        )
        self._wires = wires_of(plan.network)

    def build(self) -> None:
        """Waits until wires and routers are in place and all agents' containers have started.

        Raises:
            LabError: one cannot, or is too slow.
        """
        self._wait(Said.BUILT, self._fabric, _START_S)
        self._wait(Said.HERE, self._roll.nodes, _START_S)

    def measure(self) -> None:
        """Lets wires measure their links, one after another: nothing else goes on then.

        Raises:
            LabError: one cannot, or is too slow.
        """
        for wire in self._wires:
            self._meeting.say(Said.WORD, f"{MEASURE}{wire}")
            self._wait(Said.MEASURED, frozenset({f"{wire}{ROWS}"}), _MEASURE_S)

    def load(self) -> None:
        """Lets agents load, and sets the barrier when all are ready.

        Raises:
            AgentError, LabError: a container failed, or is too slow.
        """
        self._meeting.say(Said.WORD, LOAD)
        self._wait(Said.READY, self._roll.nodes, _LOAD_S)
        self.barrier_ns = time.time_ns() + _LEAD_NS
        self._meeting.say(Said.WORD, BARRIER, str(self.barrier_ns))

    def work(self, look: Callable[[], None] = lambda: None) -> None:
        """Waits until every client has ended.

        Args:
            look: called about once a second.

        Raises:
            AgentError, LabError: a container failed, or a client outlived its deadline.
        """
        window = self._plan.scale.lab_ns(self._plan.agents[0].window.deadline_ns)
        deadline = self.barrier_ns + window + 5 * 10**9
        with self._meeting.news(Said.ENDED) as news:
            self._note()
            while not self._roll.clients_ended():
                if time.time_ns() > deadline:
                    raise LabError(
                        "end the run", self._plan.scenario, "a client outlived its deadline"
                    )
                look()
                drain(news, _STEP_S)
                self._note()

    def stop(self) -> None:
        """Ends agents and wires in order.

        Raises:
            AgentError, LabError: one failed, or did not end in time.
        """
        self._roll.stopping = True
        self._meeting.say(Said.WORD, STOP)
        self._wait(Said.ENDED, self._roll.nodes | frozenset(self._wires), _STOP_S)

    def _wait(self, said: Said, wanted: frozenset[str], seconds: int) -> None:
        until = time.monotonic() + seconds
        with self._meeting.news(said) as news:
            while missing := wanted - self._meeting.names(said):
                self._note()
                if time.monotonic() > until:
                    raise LabError(
                        "wait for containers", ", ".join(sorted(missing)),
                        f"not {said.value} after {seconds} s", "see: docker compose logs",
                    )  # fmt: skip
                drain(news, _STEP_S)
        self._note()

    def _note(self) -> None:
        """Raises where a container said that it ended although it was not to, or failed."""
        for name in sorted(self._meeting.names(Said.ENDED)):
            words = self._meeting.heard(Said.ENDED, name) or "3"
            status, _, why = words.partition(" ")
            if name in self._fabric:
                if status != "0":
                    kind = HostError if status == str(int(ExitStatus.UNABLE)) else LabError
                    raise kind(
                        "carry the links", name, why or "it ended",
                        f"see: docker compose logs {name}",
                    )  # fmt: skip
            elif name not in self._roll.ended:
                self._roll.end(name, int(status))
