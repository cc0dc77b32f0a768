"""Network namespaces by file descriptor: enter one, open a netlink socket, come back.

A socket stays in the namespace where it was made, so entering is needed only for
a moment; no helper process and no fork per command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from pyroute2 import IPRoute

from testbed.errors import LabError

HERE = "/proc/self/ns/net"
"""The namespace we are in: entering it again would need CAP_SYS_ADMIN, which a container lacks."""
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def enter(descriptor: int) -> None:
    """Moves the calling thread into the network namespace behind ``descriptor``."""
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise LabError("enter a network namespace", f"fd {descriptor}", os.strerror(number))


@contextlib.contextmanager
def entered(path: str) -> Iterator[None]:
    """Inside the ``with`` block this thread is in the namespace at ``path``."""
    if path == HERE:
        yield
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        away = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            enter(away)
        finally:
            os.close(away)
        try:
            yield
        finally:
            enter(home)
    finally:
        os.close(home)


class _Attributes(Protocol):
    """What pyroute2 gives for a device."""

    def get_attr(self, name: str) -> object: ...


def alternative_names(link: _Attributes) -> tuple[str, ...]:
    """Further names of a device (``ip link property add … altname``)."""
    listed = link.get_attr("IFLA_PROP_LIST")
    if not isinstance(listed, dict):
        return ()
    pairs = listed.get("attrs", ())
    return tuple(str(pair[1]) for pair in pairs if pair[0] == "IFLA_ALT_IFNAME")


class Namespaces:
    """Open netlink sockets, one per namespace; closed together."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.paths = dict(paths)
        self._sockets: dict[str, IPRoute] = {}
        self._indexes: dict[str, dict[str, int]] = {}

    def __getitem__(self, node: str) -> IPRoute:
        """The netlink socket of a node, opened at first use."""
        if node not in self._sockets:
            with entered(self.paths[node]):
                self._sockets[node] = IPRoute()
        return self._sockets[node]

    def index(self, node: str, device: str) -> int:
        """Interface index of a device; one dump a node answers for all its devices."""
        known = self._indexes.get(node, {})
        if device not in known:
            known = {
                name: int(link["index"])
                for link in self[node].get_links()
                for name in (str(link.get("ifname")), *alternative_names(link))
            }
            self._indexes[node] = known
        if device not in known:
            raise LabError("find a device", f"{node}:{device}", "the node has no such device")
        return known[device]

    def write_sysctls(self, node: str, sysctls: tuple[tuple[str, str], ...]) -> None:
        """Writes network sysctls inside a node's namespace and reads them back."""
        with entered(self.paths[node]):
            for name, value in sysctls:
                path = Path("/proc/sys") / name.replace(".", "/")
                try:
                    path.write_text(value, encoding="ascii")
                    seen = path.read_text(encoding="ascii")
                except OSError as error:
                    raise LabError("set a sysctl", f"{node}: {name}={value}", str(error)) from error
                if seen.split() != value.split():
                    raise LabError("set a sysctl", f"{node}: {name}={value}", f"reads {seen!r}")

    def forget(self, node: str) -> None:
        """Looks its devices up anew at the next use."""
        self._indexes.pop(node, None)

    def close(self) -> None:
        """Closes every socket."""
        for socket in self._sockets.values():
            socket.close()
        self._sockets.clear()
