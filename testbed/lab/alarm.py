"""Says in which namespaces something changed: devices, addresses, routes, qdiscs, filters.

The kernel tells it (rtnetlink multicast), so a change is noticed whoever made it, and a lab at
rest costs one system call to look after.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Mapping

from testbed.lab.namespace import entered

_LINK, _TC, _ADDRESS, _ROUTE = 0x1, 0x8, 0x10, 0x40
"""RTMGRP_LINK, _TC, _IPV4_IFADDR and _IPV4_ROUTE (linux/rtnetlink.h)."""
_BYTES = 1 << 16


class Alarm:
    """One listening socket a namespace. What was told is forgotten: the kernel is asked anew."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._sockets: dict[str, socket.socket] = {}
        self._nodes: dict[int, str] = {}
        self._poll = select.epoll()
        for node, path in paths.items():
            self.listen(node, path)

    def listen(self, node: str, path: str) -> None:
        """Listens to a node in the namespace at ``path``, and to no earlier one of it."""
        self.leave(node)
        with entered(path):
            opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        opened.setblocking(False)
        opened.bind((0, _LINK | _TC | _ADDRESS | _ROUTE))
        self._sockets[node] = opened
        self._nodes[opened.fileno()] = node
        self._poll.register(opened, select.EPOLLIN)

    def leave(self, node: str) -> None:
        """Listens to a node no longer; its namespace can then go."""
        if node in self._sockets:
            opened = self._sockets.pop(node)
            del self._nodes[opened.fileno()]
            opened.close()  # which takes it out of the poll, too

    def rung(self) -> tuple[str, ...]:
        """Nodes in whose namespace something changed since the last call, in a stable order."""
        rang = [self._nodes[descriptor] for descriptor, _ in self._poll.poll(0)]
        return tuple(node for node in sorted(rang) if _told(self._sockets[node]))

    def close(self) -> None:
        """Closes every socket."""
        for node in tuple(self._sockets):
            self.leave(node)
        self._poll.close()


def _told(opened: socket.socket) -> bool:
    told = False
    while True:
        try:
            opened.recv(_BYTES)
        except BlockingIOError:
            return told
        except OSError:  # more was told than the socket holds (ENOBUFS)
            pass
        told = True
