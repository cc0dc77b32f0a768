"""The first process of every container: whether it is still the one that the lab knows.

A container that was restarted is another process in another network namespace, whoever restarted
it and however fast. A descriptor of the process (pidfd_open(2)) cannot be fooled by a process id
that comes again.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping

import docker
import requests
from docker.errors import DockerException
from docker.models.containers import Container

from testbed.errors import LabError
from testbed.lab.compose.cgroup import cgroup_folders, memory_kills

FAULTS = (DockerException, requests.RequestException)
"""What the SDK raises where the Engine refuses or does not answer."""
_HEARD_S, _STEP_S = 0.2, 0.001
"""How long the Engine may take to hear of an end, and how often it is asked."""


class _Life:
    """One first process."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.pid = int(container.attrs["State"]["Pid"])
        self.descriptor = os.pidfd_open(self.pid)
        self.cgroups = cgroup_folders(self.pid)


class Lives:
    """All containers of one project, by node."""

    def __init__(self, client: docker.DockerClient, project: str) -> None:
        self._client = client
        self._project = project
        self._lives: dict[str, _Life] = {}
        self._nodes: dict[int, str] = {}
        self._poll = select.epoll()

    def containers(self) -> dict[str, Container]:
        """Every container as the Engine has it now.

        Raises:
            LabError: the Engine does not answer.
        """
        label = f"com.docker.compose.project={self._project}"
        try:
            found = self._client.containers.list(all=True, filters={"label": label})
        except FAULTS as error:
            raise LabError("list the containers", self._project, str(error)) from error
        return {str(one.labels["testbed.node"]): one for one in found}

    def begin(self) -> Mapping[str, str]:
        """Takes all of them as they are now; the network namespace of each, as a path.

        Raises:
            LabError: one has ended already.
        """
        return {name: self._take(name, one) for name, one in sorted(self.containers().items())}

    def fallen(self) -> dict[str, str]:
        """Nodes whose first process ended since the last call, and how."""
        fallen = sorted(self._nodes[descriptor] for descriptor, _ in self._poll.poll(0))
        for node in fallen:
            self._poll.unregister(self._lives[node].descriptor)
        return {node: self._how(self._lives[node]) for node in fallen}

    def risen(self, node: str) -> str | None:
        """The network namespace of one that fell and runs again; None where it does not.

        Raises:
            LabError: the Engine does not answer.
        """
        old = self._lives[node]
        if not self.runs_anew(node):
            return None
        del self._nodes[old.descriptor]
        os.close(old.descriptor)
        return self._take(node, old.container)

    def runs_anew(self, node: str) -> bool:
        """Whether the Engine has started it as another process than the one the lab knows.

        Raises:
            LabError: the Engine does not answer.
        """
        state = self.inspected(node).attrs["State"]
        return bool(state["Running"]) and int(state["Pid"]) != self._lives[node].pid

    def inspected(self, node: str) -> Container:
        """The container of a node, asked about anew.

        Raises:
            LabError: the Engine does not answer, or has it no more.
        """
        container = self._lives[node].container
        try:
            container.reload()
        except FAULTS as error:
            raise LabError("ask for a container", node, str(error)) from error
        return container

    def pid(self, node: str) -> int:
        """Process id of the first process that the lab knows."""
        return self._lives[node].pid

    def memory_kills(self, node: str) -> str:
        """In words, where the kernel killed a program of a node for its memory; else empty."""
        life = self._lives[node]
        return _beyond(life.container) if memory_kills(life.cgroups) else ""

    def close(self) -> None:
        """Closes all descriptors."""
        for life in self._lives.values():
            os.close(life.descriptor)
        self._lives.clear()
        self._poll.close()

    def _take(self, node: str, container: Container) -> str:
        try:
            self._lives[node] = life = _Life(container)
        except ProcessLookupError:
            raise LabError(
                "start a container", node, "it ended at once", f"see logs/{node}.container.log"
            ) from None
        self._nodes[life.descriptor] = node
        self._poll.register(life.descriptor, select.EPOLLIN)  # readable once it has ended
        return f"/proc/{life.pid}/ns/net"

    def _how(self, life: _Life) -> str:
        """The kernel tells of an end before the Engine knows of it."""
        until = time.monotonic() + _HEARD_S
        while True:
            try:
                life.container.reload()
            except FAULTS as error:
                return f"its container ended; the Engine does not say how ({error})"
            state = life.container.attrs["State"]
            if int(state["Pid"]) != life.pid or time.monotonic() >= until:
                break
            time.sleep(_STEP_S)
        if int(state["Pid"]) == life.pid:
            return "its container ended; the Engine has not heard of it"
        if state["Pid"]:
            return "its container was started anew"
        how = f"its container ended with status {state['ExitCode']}"
        return f"{how}: {_beyond(life.container)}" if state["OOMKilled"] else how


def _beyond(container: Container) -> str:
    limit = int(container.attrs["HostConfig"]["Memory"]) // 2**20
    return f"the kernel killed a program that went beyond its memory limit of {limit} MiB"
