"""What the host's kernel lacks for a lab, each with its remedy."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed.contract.agent import Tcp
from testbed.errors import HostError
from testbed.lab.program import run_program

_MODULE = "sch_netem"
_SYS = Path("/proc/sys/net")
_OTHERWISE = "or leave out --on: --clock real in the lab guest needs neither"


def has_netem() -> bool:
    """Whether the running kernel has netem, built in or as a module; changes nothing."""
    return has_module(_MODULE)


def has_module(name: str) -> bool:
    """Whether the running kernel has this part, built in or as a module; changes nothing."""
    if Path("/sys/module", name).exists():
        return True
    if shutil.which("modprobe") is None:
        return False
    try:
        done = run_program("modprobe", "--dry-run", "--quiet", name, timeout_s=5.0)
    except (OSError, TimeoutError):
        return False
    return done.status == 0


@dataclass(frozen=True, slots=True)
class HostKernel:
    """What decides whether this host's kernel carries a lab.

    Attributes:
        congestion: congestion controls that network namespaces may use.
        send_most, receive_most: largest socket buffers that an ordinary process gets, in bytes.
    """

    release: str
    root: bool
    netem: bool
    congestion: tuple[str, ...]
    send_most: int
    receive_most: int


def read_host_kernel() -> HostKernel:
    """Of this machine; changes nothing."""
    return HostKernel(
        release=os.uname().release,
        root=os.geteuid() == 0,
        netem=has_netem(),
        congestion=tuple((_SYS / "ipv4/tcp_allowed_congestion_control").read_text().split()),
        send_most=int((_SYS / "core/wmem_max").read_text()),
        receive_most=int((_SYS / "core/rmem_max").read_text()),
    )


def refuse_host(kernel: HostKernel, tcp: Tcp) -> None:
    """Refuses a lab on this host, with the first reason.

    Raises:
        HostError: not root, a kernel without netem, or limits below what ``tcp`` asks for.
    """
    allowed = " ".join((*kernel.congestion, tcp.congestion))
    for wrong, cause, remedy in (
        (not kernel.root, "only root may make namespaces", "run it as root"),
        (
            not kernel.netem,
            f"the kernel {kernel.release} has no {_MODULE}, which delays and shapes links",
            "boot a kernel with CONFIG_NET_SCH_NETEM (Debian: apt-get install linux-image-amd64)",
        ),
        (
            tcp.congestion not in kernel.congestion,
            f"network namespaces may not use {tcp.congestion}",
            f'as root: sysctl -w net.ipv4.tcp_allowed_congestion_control="{allowed}"',
        ),
        (
            tcp.send_buffer > kernel.send_most,
            f"socket buffers end at {kernel.send_most} bytes, {tcp.send_buffer} are wanted",
            f"as root: sysctl -w net.core.wmem_max={tcp.send_buffer}",
        ),
        (
            tcp.receive_buffer > kernel.receive_most,
            f"socket buffers end at {kernel.receive_most} bytes, {tcp.receive_buffer} are wanted",
            f"as root: sysctl -w net.core.rmem_max={tcp.receive_buffer}",
        ),
    ):
        if wrong:
            raise HostError(
                "run on the host's kernel", "--on host", cause, f"{remedy}, {_OTHERWISE}"
            )
