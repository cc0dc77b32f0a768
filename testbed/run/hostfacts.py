"""Reads the facts about this machine that a plan is compared with."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from testbed.errors import UsageError
from testbed.plan import HostFacts


def read_host_facts(place: Path) -> HostFacts:
    """Facts of the host; free disk is that of ``place`` or its nearest existing parent.

    Raises:
        UsageError: this user may not look at the place.
    """
    place = place.absolute()
    try:
        while not place.exists():
            place = place.parent
    except OSError as error:
        raise UsageError(
            "look at the place for the run folder", str(place), error.strerror or str(error),
            "choose another folder with --out",
        ) from error  # fmt: skip
    memory = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.M)
    return HostFacts(
        cores=len(os.sched_getaffinity(0)),
        memory_free_bytes=int(memory[1]) * 1024 if memory else 0,
        disk_free_bytes=shutil.disk_usage(place).free,
        max_map_count=int(Path("/proc/sys/vm/max_map_count").read_text()),
    )
