"""What this host's kernel lets anybody choose, for tests that open real connections on it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Congestion = Literal["cubic", "bbr", "reno", "dctcp"]


def congestion() -> Congestion:
    """The first of ours that an ordinary user may set here; root may set all.

    The lab guest allows cubic; a host that has another default may refuse it (EPERM).
    """
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text("ascii").split()
    known: tuple[Congestion, ...] = ("cubic", "bbr", "dctcp", "reno")
    return next((one for one in known if one in allowed), "reno")
