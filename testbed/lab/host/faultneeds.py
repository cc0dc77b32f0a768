"""What faults need of the host's kernel, where a lab runs on it; the lab guest has it all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from enum import Enum

from testbed.contract.fault import LinkFault, PlannedFault, ResetFault
from testbed.contract.sieve import Hold, Sieve
from testbed.errors import HostError
from testbed.lab.host.refusal import has_module
from testbed.lab.reset import can_destroy


class Need(Enum):
    """A part of the kernel: its name, and the option that builds it."""

    PROGRAMS = ("cls_bpf", "CONFIG_NET_CLS_BPF and CONFIG_BPF_SYSCALL")
    ROOM = ("sch_fq", "CONFIG_NET_SCH_FQ")
    DESTROY = ("sock_diag destroy", "CONFIG_INET_DIAG_DESTROY")

    @property
    def part(self) -> str:
        """As the kernel calls it."""
        return self.value[0]


def needs_of(fault: PlannedFault) -> tuple[Need, ...]:
    """What one fault needs beyond what every lab does."""
    if isinstance(fault, ResetFault):
        return (Need.DESTROY,)
    if isinstance(fault, LinkFault) and isinstance(fault.effect, Sieve):
        return (Need.PROGRAMS,)
    if isinstance(fault, LinkFault) and isinstance(fault.effect, Hold):
        return (Need.PROGRAMS, Need.ROOM)
    return ()


def is_there(need: Need) -> bool:
    """Asks the running kernel; changes nothing."""
    if need is Need.DESTROY:
        return can_destroy()
    return has_module(need.part)


def lacks() -> tuple[str, ...]:
    """All that is not there, for ``doctor``."""
    return tuple(need.part for need in Need if not is_there(need))


def refuse_faults(faults: Iterable[PlannedFault], there: Callable[[Need], bool] = is_there) -> None:
    """Refuses faults that this host's kernel cannot do, the first with its place.

    Raises:
        HostError: a part of the kernel is not there.
    """
    for fault in faults:
        for need in needs_of(fault):
            if not there(need):
                raise HostError(
                    "run on the host's kernel", f"fault {fault.name} ({fault.place})",
                    f"the kernel {os.uname().release} has no {need.part}",
                    f"boot a kernel with {need.value[1]}, or leave out --on: the lab guest has it",
                )  # fmt: skip
