"""Says what it means where the host's kernel does not know netem."""

from __future__ import annotations

import errno
import os

from pyroute2.netlink.exceptions import NetlinkError

from testbed.errors import HostError, TestbedError


def explained(error: TestbedError) -> TestbedError:
    """The error itself, or the refusal that it stands for: no qdisc of that kind (ENOENT)."""
    cause = error.__cause__
    missing = isinstance(cause, NetlinkError) and cause.code == errno.ENOENT
    if not missing or not error.subject.startswith("netem"):
        return error
    return HostError(
        "shape the links", f"kernel {os.uname().release}",
        "it has no sch_netem, which delays and shapes links",
        "on the host: modprobe sch_netem, or boot a kernel that has it; otherwise: testbed run",
    )  # fmt: skip
