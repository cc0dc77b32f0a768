"""Socket buffers: set where the kernel allows it, else left to its own tuning, never smaller."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from testbed.contract.agent import Tcp
from testbed.errors import AgentError
from testbed_agents.transport import connection as module
from testbed_agents.transport.connection import tuned_socket

pytestmark = pytest.mark.unit
SIZE = 300_000
TCP = Tcp(send_buffer=SIZE, receive_buffer=SIZE, receive_low_water=1)


@pytest.fixture
def sysctls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel that grants no buffer, and tunes them as far as SIZE."""
    for name in ("tcp_rmem", "tcp_wmem"):
        (tmp_path / name).write_text(f"4096\t131072\t{SIZE}\n")
    monkeypatch.setattr(module, "_SYSCTLS", tmp_path)
    monkeypatch.setattr(module, "_set_buffers", lambda *_: False)
    return tmp_path


def test_what_is_granted_is_set() -> None:
    small = TCP.model_copy(update={"send_buffer": 50_000, "receive_buffer": 60_000})
    with tuned_socket(small) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 100_000
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 120_000


@pytest.mark.usefixtures("sysctls")
def test_what_is_not_granted_is_left_to_the_kernel() -> None:
    with tuned_socket(TCP) as made, socket.socket() as plain:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            untouched = plain.getsockopt(socket.SOL_SOCKET, option)
            assert made.getsockopt(socket.SOL_SOCKET, option) == untouched
        assert not made.getblocking()


@pytest.mark.parametrize("name", ["tcp_rmem", "tcp_wmem"])
def test_a_kernel_that_would_tune_less_is_refused(sysctls: Path, name: str) -> None:
    (sysctls / name).write_text(f"4096\t131072\t{SIZE - 1}\n")
    with pytest.raises(AgentError, match=f"net.ipv4.{name} ends at {SIZE - 1}"):
        tuned_socket(TCP)
