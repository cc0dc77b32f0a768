"""Public request traces: one file a format, one ``Trace`` of columns for all.

Never looks at a scenario or a cache; what a trace means for a run is decided by
``testbed.workload.draw`` and ``testbed.workload.prefix``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from testbed.errors import PlanError
from testbed.workload.traces.azure import load_azure
from testbed.workload.traces.bailian import load_bailian
from testbed.workload.traces.burstgpt import load_burstgpt
from testbed.workload.traces.mooncake import load_mooncake
from testbed.workload.traces.trace import Trace

FORMATS: dict[str, Callable[[Path, int | None], Trace]] = {
    "mooncake": load_mooncake,
    "bailian": load_bailian,
    "azure": load_azure,
    "burstgpt": load_burstgpt,
}


def load_trace(path: Path, take: int | None = None, form: str = "mooncake") -> Trace:
    """Read ``path``, which has the format ``form``; only its first ``take`` requests if given.

    Raises:
        PlanError: the format is unknown, the file cannot be read, is empty or too long,
            or a line is wrong; the message names file and line.
    """
    if form not in FORMATS:
        raise PlanError("load trace", str(path), f"no format {form}", f"use {', '.join(FORMATS)}")
    return FORMATS[form](path, take)


__all__ = ["FORMATS", "Trace", "load_trace"]
