"""Faults of nodes that are namespaces: signals to an agent's process, its devices down and up."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from testbed.contract.network import Network, Node
from testbed.errors import LabError
from testbed.lab.configure import add_neighbours, add_routes
from testbed.lab.namespace import Namespaces

_MOST_S = 5.0
_STEP_S, _LONGEST_STEP_S = 0.00005, 0.001


class NamespaceFaults:
    """See ``NodeFaults``. Wires and routers have no process; no agent can be started anew."""

    def __init__(self, network: Network, namespaces: Namespaces) -> None:
        self._network = network
        self._namespaces = namespaces

    def pause(self, node: str) -> None:
        """See ``NodeFaults``."""
        pid = self._process(node)
        os.kill(pid, signal.SIGSTOP)
        self._until("pause an agent", node, lambda: _state(pid) == "T")

    def resume(self, node: str) -> None:
        """See ``NodeFaults``."""
        pid = self._process(node)
        os.kill(pid, signal.SIGCONT)
        self._until("resume an agent", node, lambda: _state(pid) != "T")

    def kill(self, node: str) -> None:
        """See ``NodeFaults``."""
        pid = self._process(node)
        os.kill(pid, signal.SIGKILL)
        self._until("kill an agent", node, lambda: _state(pid) in ("", "Z", "X"))

    def revive(self, node: str) -> None:
        """See ``NodeFaults``."""
        raise LabError(
            "start a node anew", node, "in the Mininet lab agents are forked once, together",
            "run it with --lab compose",
        )  # fmt: skip

    def restart(self, node: str) -> None:
        """See ``NodeFaults``."""
        self.revive(node)

    def disconnect(self, node: str) -> None:
        """See ``NodeFaults``: its devices go down, and its routes with them."""
        self._set(node, "down")
        self._until("disconnect a node", node, lambda: not self._carrying(node))

    def connect(self, node: str) -> None:
        """See ``NodeFaults``: devices up, then what the kernel forgot with them."""
        self._set(node, "up")
        wanted = self._devices(node)
        self._until("connect a node", node, lambda: self._carrying(node) == wanted)
        add_routes(self._namespaces, self._network, node)
        add_neighbours(self._namespaces, self._network, node)

    def _set(self, node: str, state: str) -> None:
        socket = self._namespaces[node]
        for interface in self._node(node).interfaces:
            socket.link("set", index=self._namespaces.index(node, interface.name), state=state)

    def _carrying(self, node: str) -> set[str]:
        """Its devices that have a carrier. Their operational state says the same, but up to a
        second later (net/core/link_watch.c: one event a second)."""
        return self._devices(node) & {
            str(link.get("ifname"))
            for link in self._namespaces[node].get_links()
            if link.get("carrier") == 1
        }

    def _devices(self, node: str) -> set[str]:
        return {interface.name for interface in self._node(node).interfaces}

    def _node(self, name: str) -> Node:
        return next(node for node in self._network.nodes if node.name == name)

    def _process(self, node: str) -> int:
        """The agent's process: the one of its name in its network namespace."""
        namespace = os.stat(self._namespaces.paths[node]).st_ino
        for entry in Path("/proc").iterdir():
            try:
                if (
                    entry.name.isdigit()
                    and (entry / "comm").read_text(encoding="utf-8").strip() == node[:15]
                    and (entry / "ns" / "net").stat().st_ino == namespace
                ):
                    return int(entry.name)
            except OSError:  # it ended meanwhile
                continue
        raise LabError("find an agent", node, "no process of that name is in its namespace")

    def _until(self, attempt: str, node: str, holds: Callable[[], bool]) -> None:
        """Looks again and again: first soon, for a fault that is late makes its run invalid."""
        until, step = time.monotonic() + _MOST_S, _STEP_S
        while not holds():
            if time.monotonic() >= until:
                raise LabError(attempt, node, "the kernel took the order, but it is not so")
            time.sleep(step)
            step = min(2 * step, _LONGEST_STEP_S)


def _state(pid: int) -> str:
    """State of a process (proc(5), stat, field 3); empty where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text[text.rindex(")") + 2]
