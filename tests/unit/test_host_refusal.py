"""A host that cannot carry a lab is refused with the reason and the command that helps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.contract.agent import Tcp
from testbed.errors import ExitStatus, HostError
from testbed.lab.host.refusal import HostKernel, read_host_kernel, refuse_host

pytestmark = pytest.mark.unit

TCP = Tcp(congestion="cubic", send_buffer=500_000, receive_buffer=400_000, receive_low_water=1)
GOOD = HostKernel(
    release="6.12.1", root=True, netem=True, congestion=("reno", "cubic"),
    send_most=500_000, receive_most=400_000,
)  # fmt: skip


def test_a_host_with_everything_is_not_refused() -> None:
    refuse_host(GOOD, TCP)


@pytest.mark.parametrize(
    ("kernel", "cause", "remedy"),
    [
        (replace(GOOD, root=False), "only root", "run it as root"),
        (replace(GOOD, netem=False), "6.12.1 has no sch_netem", "CONFIG_NET_SCH_NETEM"),
        (
            replace(GOOD, congestion=("reno", "bbr")),
            "may not use cubic",
            'tcp_allowed_congestion_control="reno bbr cubic"',
        ),
        (replace(GOOD, send_most=499_999), "end at 499999 bytes", "net.core.wmem_max=500000"),
        (replace(GOOD, receive_most=1), "end at 1 bytes", "net.core.rmem_max=400000"),
    ],
)
def test_each_lack_is_named_with_its_remedy(kernel: HostKernel, cause: str, remedy: str) -> None:
    with pytest.raises(HostError) as caught:
        refuse_host(kernel, TCP)
    assert cause in caught.value.cause
    assert remedy in caught.value.remedy
    assert "--clock real in the lab guest" in caught.value.remedy
    assert caught.value.exit_status is ExitStatus.UNABLE


def test_this_machine_can_be_asked() -> None:
    kernel = read_host_kernel()
    assert "reno" in kernel.congestion
    assert kernel.send_most > 0
