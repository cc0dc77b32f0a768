"""The agents of a run in containers: heard and told through the run folder's meeting place."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.contract.meeting import BARRIER, LOAD, STOP, Meeting, Said, drain
from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.errors import AgentError
from testbed.lab.compose.lab import ComposeLab
from testbed.lab.roll import Roll

_STOP_S = 20
_STEP_S = 1.0
_LOAD_S, _LEAD_S = 300, 2
"""Real seconds for loading models, and from there to the barrier."""


class ComposeCrew:
    """Agents that Compose started, and that wait to be told to begin. Use as a context manager:
    entering tells them; the lab removes them."""

    def __init__(self, plan: Plan, run: Path, lab: ComposeLab) -> None:
        self._lab = lab
        self.barrier_ns = plan.guest.barrier_ns
        self._real = plan.clock == "real"
        self._meeting = Meeting(run)
        self._roll = Roll(plan)

    def __enter__(self) -> Self:
        self._meeting.say(Said.WORD, LOAD)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and not self._roll.stopping:
            self._meeting.say(Said.WORD, STOP)

    def wait_ready(self, mark: Mark) -> None:
        """Returns when every agent waits at the barrier.

        Raises:
            AgentError: an agent died first, or the barrier's time came.
        """
        deadline = time.time_ns() + _LOAD_S * 10**9 if self._real else self.barrier_ns
        with self._meeting.news(Said.READY) as news:
            while missing := self._roll.nodes - self._meeting.names(Said.READY):
                self._note()
                for node, how in self._lab.fallen().items():
                    raise AgentError("start the agents", node, how, f"see logs/{node}.log")
                left = (deadline - time.time_ns()) / 1e9
                if left <= 0:
                    raise AgentError(
                        "start the agents", ", ".join(sorted(missing)),
                        "not ready when the barrier's time came",
                    )  # fmt: skip
                drain(news, min(left, _STEP_S))
                mark.touch(time.time_ns())
        if self._real:
            self.barrier_ns = time.time_ns() + _LEAD_S * 10**9
            self._meeting.say(Said.WORD, BARRIER, str(self.barrier_ns))

    def watch(self, until_ns: int, also: int | None = None) -> None:
        """Handles what agents report, until something came or the time is reached.

        Raises:
            AgentError: an agent ended with a failure, or before it was told to.
        """
        with self._meeting.news(Said.ENDED) as news:
            before = len(self._roll.ended)
            self._note()
            left = (until_ns - time.time_ns()) / 1e9
            if len(self._roll.ended) == before and left > 0:
                drain(news, left, also)
                self._note()

    def _note(self) -> None:
        for node in sorted(self._meeting.names(Said.ENDED) - self._roll.ended.keys()):
            text = self._meeting.heard(Said.ENDED, node) or "1"
            self._roll.end(node, int(text.split()[0]), self._lab.memory_kills(node))

    def excuse(self, node: str) -> None:
        """See ``Agents``."""
        self._roll.excused.add(node)

    def fell(self, node: str, how: str) -> None:
        """See ``Agents``.

        Raises:
            AgentError: nobody told it to.
        """
        if node not in self._roll.ended:
            self._roll.end(node, -signal.SIGKILL, how)

    def clients_ended(self) -> bool:
        """Whether every client has ended by itself."""
        return self._roll.clients_ended()

    def stop(self) -> None:
        """Asks every agent to end and waits for it.

        Raises:
            AgentError: an agent did not end in time or ended with a failure.
        """
        self._roll.stopping = True
        self._meeting.say(Said.WORD, STOP)
        deadline = time.time_ns() + _STOP_S * 10**9
        while late := self._roll.alive():
            if time.time_ns() >= deadline:
                raise AgentError(
                    "stop the agents", ", ".join(sorted(late)), f"alive after {_STOP_S} s"
                )
            self.watch(until_ns=deadline)
