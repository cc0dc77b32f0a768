"""What a built lab and its agents are, whoever made them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from testbed.contract.network import Network
from testbed.contract.progress import Mark


class NodeFaults(Protocol):
    """What can be done to the nodes of a lab. Each call returns when it is in force, as the
    kernel or the Engine says, and raises LabError where it is not, or cannot be in this lab."""

    def pause(self, node: str) -> None:
        """Its programs stand still; the kernel goes on acknowledging for them."""
        ...

    def resume(self, node: str) -> None:
        """They go on."""
        ...

    def kill(self, node: str) -> None:
        """Its programs end at once, without a farewell."""
        ...

    def revive(self, node: str) -> None:
        """A killed node starts anew; ``Lab.risen`` says when it has set itself up."""
        ...

    def restart(self, node: str) -> None:
        """Its programs end at once and start anew; see ``revive``."""
        ...

    def disconnect(self, node: str) -> None:
        """It loses its links, without their being shaped in another way."""
        ...

    def connect(self, node: str) -> None:
        """It has its links again: the same devices, addresses and routes as before."""
        ...


class Lab(Protocol):
    """A built network."""

    network: Network

    def paths(self) -> Mapping[str, str]:
        """Network namespace of every node, as a path."""
        ...

    def fallen(self) -> Mapping[str, str]:
        """Nodes that ended since the last call, and how, in words."""
        ...

    def risen(self, node: str) -> bool:
        """Whether one that fell runs again and has set itself up; its path is then the new one."""
        ...

    def returning(self, node: str) -> bool:
        """Whether one that fell runs again at least."""
        ...

    def node_faults(self) -> NodeFaults:
        """What can be done to its nodes."""
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

    def watch(self, until_ns: int, also: int | None = None) -> None:
        """Handles what agents report until something came, the time is reached, or the
        descriptor ``also`` is readable."""
        ...

    def excuse(self, node: str) -> None:
        """From now on this one may end: a fault wants it."""
        ...

    def fell(self, node: str, how: str) -> None:
        """One ended without being able to report it."""
        ...

    def clients_ended(self) -> bool:
        """Whether every client has ended by itself."""
        ...

    def stop(self) -> None:
        """Asks every agent to end and waits for it."""
        ...
