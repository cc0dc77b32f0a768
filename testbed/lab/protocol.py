"""What a built lab and its agents are, whoever made them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from testbed.contract.network import Network
from testbed.contract.progress import Mark


class Lab(Protocol):
    """A built network."""

    network: Network

    def paths(self) -> Mapping[str, str]:
        """Network namespace of every node, as a path."""
        ...


class Agents(AbstractContextManager["Agents"], Protocol):
    """The agents of a run. Leaving it ends every one. Each call raises AgentError where one
    is not ready in time, fails, or ends before it was told to."""

    @property
    def barrier_ns(self) -> int:
        """CLOCK_REALTIME of the barrier; final once all are ready."""
        ...

    def wait_ready(self, mark: Mark) -> None:
        """Returns when every agent is ready for the barrier."""
        ...

    def watch(self, until_ns: int) -> None:
        """Handles what agents report until something came or the time is reached."""
        ...

    def clients_ended(self) -> bool:
        """Whether every client has ended by itself."""
        ...

    def stop(self) -> None:
        """Asks every agent to end and waits for it."""
        ...
