"""Faults of containers, through the Engine: each is looked at afterwards, not believed."""

from __future__ import annotations

import time
from collections.abc import Callable

import docker
from docker.models.containers import Container

from testbed.contract.network import Network
from testbed.contract.role import NodeKind
from testbed.contract.segment import segments
from testbed.errors import LabError
from testbed.lab.compose.cgroup import is_frozen
from testbed.lab.compose.lives import FAULTS, Lives
from testbed.lab.tc.dump import Reader

_MOST_S = 10.0
_STEP_S = 0.001


class ContainerFaults:
    """See ``NodeFaults``.

    Args:
        named: called with a node whose devices Docker has made anew.
    """

    def __init__(
        self, network: Network, lives: Lives, client: docker.DockerClient, project: str,
        named: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._lives = lives
        self._client = client
        self._project = project
        self._named = named
        self._agents = {n.name for n in network.nodes if n.kind is NodeKind.AGENT}
        self._network = network

    def pause(self, node: str) -> None:
        """See ``NodeFaults``."""
        self._do("pause a container", node, Container.pause)
        self._until("pause a container", node, lambda: is_frozen(self._lives.pid(node)))

    def resume(self, node: str) -> None:
        """See ``NodeFaults``."""
        self._do("resume a container", node, Container.unpause)
        self._until("resume a container", node, lambda: not is_frozen(self._lives.pid(node)))

    def kill(self, node: str) -> None:
        """See ``NodeFaults``."""
        self._do("kill a container", node, Container.kill)
        self._until("kill a container", node, lambda: not self._runs(node))

    def revive(self, node: str) -> None:
        """See ``NodeFaults``."""
        self._do("start a container", node, Container.start)
        self._until("start a container", node, lambda: self._runs(node))

    def restart(self, node: str) -> None:
        """See ``NodeFaults``."""

        def again(container: Container) -> None:
            container.restart(timeout=0)

        self._do("restart a container", node, again)
        self._until("restart a container", node, lambda: self._lives.runs_anew(node))

    def disconnect(self, node: str) -> None:
        """See ``NodeFaults``. Only an agent's devices come back as they were by themselves."""
        if node not in self._agents:
            raise LabError(
                "disconnect a node", node, "wires and routers set up their devices when they start",
                "cut its links, or restart it",
            )  # fmt: skip
        for name, _ in self._seats(node):

            def leave(container: Container, name: str = name) -> None:
                self._client.networks.get(name).disconnect(container, force=True)

            self._do("disconnect a container", node, leave)
        self._until("disconnect a container", node, lambda: self._devices(node) == {"lo"})

    def connect(self, node: str) -> None:
        """See ``NodeFaults``."""
        for name, address in self._seats(node):

            def enter(container: Container, name: str = name, address: str = address) -> None:
                self._client.networks.get(name).connect(container, ipv4_address=address)

            self._do("connect a container", node, enter)
        self._until("connect a container", node, lambda: self._devices(node) > {"lo"})
        self._named(node)

    def _seats(self, node: str) -> list[tuple[str, str]]:
        return [
            (f"{self._project}_{segment.name}", seat.address)
            for segment in segments(self._network)
            for seat in segment.seats
            if seat.node == node
        ]

    def _devices(self, node: str) -> set[str]:
        with Reader(f"/proc/{self._lives.pid(node)}/ns/net") as reader:
            return set(reader.devices())

    def _runs(self, node: str) -> bool:
        return bool(self._lives.inspected(node).attrs["State"]["Running"])

    def _do(self, attempt: str, node: str, call: Callable[[Container], None]) -> None:
        try:
            call(self._lives.inspected(node))
        except FAULTS as error:
            raise LabError(attempt, node, str(error), "see logs/dockerd.log") from error

    def _until(self, attempt: str, node: str, holds: Callable[[], bool]) -> None:
        """Looks whether the kernel or the Engine agrees; news of both take a moment."""
        until = time.monotonic() + _MOST_S
        while not holds():
            if time.monotonic() >= until:
                raise LabError(attempt, node, "the Engine says so, but it is not so")
            time.sleep(_STEP_S)
