"""Traffic-control requests through pyroute2, with TCA_OPTIONS as bytes of our own.

pyroute2's netem plugin ignores keywords it does not know and lacks 64-bit fields, so
only its message framing, sequence numbers and error handling are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from pyroute2 import IPRoute
from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, nlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import (
    RTM_DELQDISC,
    RTM_DELTFILTER,
    RTM_NEWQDISC,
    RTM_NEWTCLASS,
    RTM_NEWTFILTER,
)

from testbed.errors import LabError

ROOT = 0xFFFFFFFF
CLSACT = 0xFFFFFFF1
CLSACT_HANDLE = 0xFFFF0000
INGRESS = 0xFFFFFFF2
EGRESS = 0xFFFFFFF3
ROOT_HANDLE = 0x00010000
"""1: - the handle of every root qdisc of ours."""
CHILD_HANDLE = 0x00020000
FILTER_INFO = (1 << 16) | 0x0300
"""Priority 1, protocol ETH_P_ALL in network byte order."""
_FIRST_SIEVE = 2
ENOENT, EINVAL = 2, 22


def sieve_info(number: int) -> int:
    """Where the sieve of a fault stands: behind the program that decides on departure times."""
    return (_FIRST_SIEVE + number) << 16 | FILTER_INFO & 0xFFFF


class Command(IntEnum):
    """Message types with the flags that go with them here."""

    ADD_QDISC = RTM_NEWQDISC
    DELETE_QDISC = RTM_DELQDISC
    ADD_CLASS = RTM_NEWTCLASS
    ADD_FILTER = RTM_NEWTFILTER
    DELETE_FILTER = RTM_DELTFILTER


class TrafficMessage(nlmsg):  # type: ignore[misc]  # pyroute2 has no types
    """struct tcmsg with kind and raw options."""

    fields = (
        ("family", "B"),
        ("pad1", "B"),
        ("pad2", "H"),
        ("index", "i"),
        ("handle", "I"),
        ("parent", "I"),
        ("info", "I"),
    )
    nla_map = (("TCA_UNSPEC", "none"), ("TCA_KIND", "asciiz"), ("TCA_OPTIONS", "cdata"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a qdisc, class or filter sits."""

    index: int
    handle: int
    parent: int
    info: int = 0


def send(socket: IPRoute, command: Command, place: Place, kind: str, options: bytes) -> None:
    """Create (or delete) one object and wait for the kernel's answer.

    Raises LabError with the kernel's reason.
    """
    flags = NLM_F_REQUEST | NLM_F_ACK
    if command not in (Command.DELETE_QDISC, Command.DELETE_FILTER):
        flags |= NLM_F_CREATE | NLM_F_EXCL
    _exchange(socket, command, place, kind, options, flags)


def change(socket: IPRoute, place: Place, kind: str, options: bytes) -> None:
    """Change an existing qdisc in place; packets it holds stay."""
    _exchange(socket, Command.ADD_QDISC, place, kind, options, NLM_F_REQUEST | NLM_F_ACK)


def delete_if_there(socket: IPRoute, place: Place) -> None:
    """Delete a qdisc of any kind; "there is none" is not an error."""
    try:
        send(socket, Command.DELETE_QDISC, place, "", b"")
    except LabError as error:
        cause = error.__cause__
        if not isinstance(cause, NetlinkError) or cause.code not in (ENOENT, EINVAL):
            raise


def _exchange(
    socket: IPRoute, command: Command, place: Place, kind: str, options: bytes, flags: int
) -> None:
    message = TrafficMessage()
    message["index"] = place.index
    message["handle"] = place.handle
    message["parent"] = place.parent
    message["info"] = place.info
    message["attrs"] = [("TCA_KIND", kind)] if kind else []
    if options:
        message["attrs"].append(("TCA_OPTIONS", options))
    message["header"]["type"] = int(command)
    message["header"]["flags"] = flags
    try:
        socket.nlm_request_batch([message])
    except NetlinkError as error:
        where = f"{kind} on interface {place.index}, parent {place.parent:#x}"
        raise LabError(command.name.lower().replace("_", " "), where, str(error)) from error
