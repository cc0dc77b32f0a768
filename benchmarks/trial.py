"""One guest, booted for a measurement: its wall time, its CPU time, its run folder.

CPU time is that of the warden, the guest kernel and every program in it, from the
rusage of ended children; it hardly depends on what else the machine does, which wall
time does. Analysis on the host is outside both.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import LabError
from testbed.lab.guest.boot import Orders, boot, tail
from testbed.lab.guest.kernel.cache import cache_root
from testbed.lab.guest.snapshot import snapshot
from testbed.run.execute import lab_kernel
from testbed.run.folder import make_folder, write_inputs
from testbed.run.prepare import Prepared
from testbed.run.provenance import provenance

AGENTS = ("-m", "testbed.run.inside", "/mnt/run")
"""The lab program of ``testbed run``."""
INSIDE = Path(__file__).with_name("inside")


@dataclass(frozen=True, slots=True)
class Trial:
    """What one guest took. ``began_s`` is the host's clock when it was asked for."""

    folder: Path
    wall_s: float
    cpu_s: float
    began_s: float

    def seconds_until(self, name: str) -> float:
        """Wall seconds from the start until the guest made or changed a file of its folder."""
        return (self.folder / name).stat().st_ctime - self.began_s


def run_trial(
    prepared: Prepared,
    folder: Path,
    program: str | None = None,
    inputs: Mapping[str, str] | None = None,
) -> Trial:
    """Boots a guest for a plan and waits for its end.

    Args:
        program: a file of ``benchmarks/inside`` that runs in place of the lab program.
        inputs: files by name that the program reads from the run folder.

    Raises:
        LabError: the program in the guest failed; carries the end of its log.
    """
    plan, kernel = prepared.plan, lab_kernel()
    text = prepared.scenario.resolved_yaml()
    run = make_folder(folder)
    write_inputs(run, text, plan, prepared.requests, provenance(plan.seed, kernel, text))
    argv: tuple[str, ...] = AGENTS
    if program is not None:
        shutil.copyfile(INSIDE / program, run / program)
        argv = (f"/mnt/run/{program}",)
    for name, content in (inputs or {}).items():
        (run / name).write_text(content, encoding="utf-8")
    orders = Orders(
        run, argv, plan.guest.memory_bytes, plan.guest.entropy_seed, plan.guest.start_ns,
        shown={} if prepared.weights is None else {"weights": prepared.weights.parent},
    )  # fmt: skip
    snapshot(cache_root() / "code")  # made once per version of the code: not part of a start
    before, began_s, started = _children_s(), time.time(), time.monotonic()
    outcome = boot(kernel, orders, cache_root())
    wall_s = time.monotonic() - started
    if outcome.status != 0:
        raise LabError("run a benchmark", str(run), tail(run / "logs" / "guest.log", 20))
    return Trial(run, wall_s, _children_s() - before, began_s)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for the run folders of one benchmark, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="testbed-benchmark-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _children_s() -> float:
    """CPU seconds of all ended children of this process and theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
