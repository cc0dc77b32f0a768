"""TCP_INFO: the fields are where <linux/tcp.h> puts them."""

from __future__ import annotations

import socket
import struct

import pytest

from testbed_agents.transport import Fault, FrameError
from testbed_agents.transport.tcp_info import SIZE, decode_tcp_info, read_tcp_info


def test_fields_are_read_from_their_offsets() -> None:
    data = bytearray(SIZE)
    for offset, value in ((32, 5), (68, 20_000), (72, 300), (80, 77), (100, 9), (148, 19_000)):
        struct.pack_into("=I", data, offset, value)
    struct.pack_into("=Q", data, 160, 1_250_000_000)
    info = decode_tcp_info(bytes(data))
    assert (info.lost, info.rtt_us, info.rttvar_us, info.cwnd) == (5, 20_000, 300, 77)
    assert (info.total_retrans, info.min_rtt_us) == (9, 19_000)
    assert info.delivery_bps == 10_000_000_000


def test_a_short_struct_is_refused() -> None:
    with pytest.raises(FrameError) as caught:
        decode_tcp_info(bytes(SIZE - 1))
    assert caught.value.reason is Fault.TRUNCATED


def test_the_kernel_answers_for_a_live_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as connection:
            info = read_tcp_info(connection)
    assert 0 < info.cwnd < 10_000
    assert info.total_retrans == 0
