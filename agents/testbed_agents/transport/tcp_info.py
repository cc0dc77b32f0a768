"""The kernel's view of one TCP connection: ``struct tcp_info`` of <linux/tcp.h>."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, replace

from testbed_agents.transport.fault import Fault, FrameError

# u8 x8 │ rto ato snd_mss rcv_mss │ unacked sacked lost retrans fackets │ 4 x last_* │
# pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering │ rcv_rtt rcv_space │
# total_retrans │ pacing max_pacing acked received │ segs_out segs_in notsent min_rtt
# data_segs_in data_segs_out │ delivery_rate
_LAYOUT = struct.Struct("=8B4I5I4I8I2II4Q6IQ")
SIZE = _LAYOUT.size


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """Times in microseconds, counts in segments, the window in segments.

    ``total_retrans`` counts over the connection's whole life; ``lost`` is what the
    sender holds for lost at this moment. ``silent_ms`` is the time since the peer's kernel was
    heard of, ``owed`` counts the segments and probes that it has not answered: without any it
    has no reason to speak.
    """

    rtt_us: int
    rttvar_us: int
    min_rtt_us: int
    cwnd: int
    lost: int
    total_retrans: int
    delivery_bps: int
    acked_bytes: int = 0
    silent_ms: int = 0
    owed: int = 0

    def emulated(self, slow: float) -> TcpInfo:
        """The same in emulated time, where an emulated second takes ``slow`` of the kernel's."""
        if slow == 1:
            return self
        return replace(
            self,
            rtt_us=round(self.rtt_us / slow),
            rttvar_us=round(self.rttvar_us / slow),
            min_rtt_us=round(self.min_rtt_us / slow),
            delivery_bps=round(self.delivery_bps * slow),
            silent_ms=round(self.silent_ms / slow),
        )


def decode_tcp_info(data: bytes) -> TcpInfo:
    """Raises FrameError when the kernel's struct is shorter than Linux 4.9's."""
    if len(data) < SIZE:
        raise FrameError(Fault.TRUNCATED, "TCP_INFO", f"{len(data)} of {SIZE} bytes")
    field = _LAYOUT.unpack_from(data)
    return TcpInfo(
        rtt_us=field[23],
        rttvar_us=field[24],
        min_rtt_us=field[39],
        cwnd=field[26],
        lost=field[14],
        total_retrans=field[31],
        delivery_bps=field[42] * 8,
        acked_bytes=field[34],
        silent_ms=field[20],
        owed=field[12] + field[3],
    )


def read_tcp_info(connection: socket.socket) -> TcpInfo:
    """Ask the kernel; one system call."""
    return decode_tcp_info(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SIZE))
