"""Makes room for runs: Docker makes a missing ``./runs`` for root, and agents are not root."""

from __future__ import annotations

import os
import time
from pathlib import Path


def open_runs(runs: Path) -> None:
    """Lets anyone make a folder in the folder of all runs, where it is root's.

    Somebody else's folder is left alone: for that the right to change others' files is needed, and
    its owner may have reasons.
    """
    facts = runs.stat()
    if facts.st_uid == os.geteuid() and facts.st_mode & 0o1777 != 0o1777:
        runs.chmod(0o1777)


def started_ns() -> int:
    """When this container started, by CLOCK_REALTIME, to a hundredth of a second."""
    fields = Path("/proc/1/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    after_boot_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    up_s = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return time.time_ns() - int((up_s - after_boot_s) * 1e9)
