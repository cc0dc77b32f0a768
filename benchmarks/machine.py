"""The facts about a machine without which a figure means nothing."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from testbed.run.execute import lab_kernel
from testbed.run.provenance import file_digest


def processor() -> str:
    """The processor's name as the kernel gives it."""
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.M)
    return found[1] if found else platform.machine()


def machine() -> str:
    """One line: processor, cores allowed, memory, load, host kernel, lab kernel."""
    total = re.search(r"^MemTotal:\s+(\d+) kB$", Path("/proc/meminfo").read_text("utf-8"), re.M)
    memory = int(total[1]) / 2**20 if total else 0.0
    return (
        f"machine: {processor()}, {len(os.sched_getaffinity(0))} cores allowed, "
        f"{memory:.0f} GiB, load {os.getloadavg()[0]:.1f}, Linux {platform.release()}, "
        f"lab kernel {file_digest(lab_kernel().linux)[:12]}, Python {platform.python_version()}"
    )
