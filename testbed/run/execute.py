"""Executes a prepared run: folder, guest, analysis, verdict, report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from testbed.checks import CHECKS, Verdict, judge, require_run_folder, spoil
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.errors import (
    AgentError,
    AnalysisError,
    FidelityError,
    HostError,
    LabError,
    TestbedError,
    UsageError,
)
from testbed.lab.guest.boot import Kernel, Orders, Outcome, boot, code_snapshot, tail
from testbed.lab.guest.kernel.cache import cache_root, kernel_path
from testbed.lab.guest.progress import Progress
from testbed.lab.host.refusal import read_host_kernel, refuse_host
from testbed.lab.hostledger import HostLedger
from testbed.lab.program import run_module
from testbed.metrics.compute import Json, compute
from testbed.report import write_report
from testbed.run.expected import expectation, scale_of
from testbed.run.folder import make_default_folder, make_folder, refuse_taken, write_inputs
from testbed.run.hostfacts import read_host_facts
from testbed.run.hostwatch import HostWatch
from testbed.run.mark import TookPlace, marked_unless_finished, read_mark, spoil_again
from testbed.run.prepare import Prepared
from testbed.run.provenance import provenance
from testbed.scenario import Scenario
from testbed.units import Duration, Size

LEAST_MEMORY = 256 * 2**20
"""Bytes below which no lab guest comes up."""
LEAST_WITH_ENGINE = 1024 * 2**20
"""Bytes below which a guest with a container Engine does nothing but look for memory."""
_ANALYSED = ("record-readable", "The record can be analysed.")
Watch: TypeAlias = Callable[[Progress, float], None]
_RAISED = {kind.__name__: kind for kind in (AgentError, FidelityError, HostError, LabError)}


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that was analysed."""

    folder: Path
    verdict: Verdict
    metrics: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Tuning:
    """What may differ between two runs of one plan without any trace in the timeline.

    Attributes:
        memory_bytes: another guest memory than planned.
        stuck_after_s: wall seconds without progress after which the run is ended.
    """

    memory_bytes: int | None = None
    stuck_after_s: float = 120.0

    @classmethod
    def parse(cls, memory: str | None, stuck_after: str) -> Tuning:
        """From the command line's words.

        Raises:
            UnitError: a quantity without a unit.
            UsageError: less than a guest or a wait can be.
            HostError: more memory than this host has.
        """
        patience = Duration.parse(stuck_after)
        if patience.seconds < 1:
            raise UsageError(
                "run the scenario", f"--stuck-after {stuck_after}", "it is under a second",
                "give a stuck guest at least 1 s; the default is 120 s",
            )  # fmt: skip
        if memory is None:
            return cls(None, patience.seconds)
        size = Size.parse(memory).bytes
        if size < LEAST_MEMORY:
            raise UsageError(
                "run the scenario", f"--memory {memory}", "a guest needs at least 256 MiB",
                "leave --memory out to take what was planned",
            )  # fmt: skip
        free = read_host_facts(Path()).memory_free_bytes
        if size > 4 * free:  # sparse: a guest rarely touches all that it is given
            raise HostError(
                "run the scenario", f"--memory {memory}",
                f"this host has {free // 2**20} MiB free", "leave --memory out",
            )  # fmt: skip
        return cls(size, patience.seconds)


def lab_kernel() -> Kernel:
    """The built lab kernel.

    Raises:
        HostError: there is none; names the command that builds it.
    """
    linux = kernel_path()
    if linux is None:
        raise HostError(
            "find the lab kernel", "lab guest", "it has not been built on this machine",
            "run: testbed kernel build",
        )  # fmt: skip
    return Kernel(linux, linux.with_name("entropy.so"))


def execute(
    prepared: Prepared,
    folder: Path | None,
    watch: Watch | None = None,
    tuning: Tuning = Tuning(),  # a frozen value
    say: Callable[[str], None] = lambda _: None,
) -> Finished:
    """Runs the plan in a new folder and judges it.

    Args:
        folder: where the run is recorded; None makes one below ``runs``.
        watch: called with progress and wall seconds while the guest runs.
        say: told what else takes long.

    Raises:
        TestbedError: what went wrong; the folder keeps everything, with an invalid verdict
            where the lab had started.
    """
    plan = prepared.plan
    if plan.host == "host":
        _refuse_on_host(plan)
    if plan.lab == "compose" and (tuning.memory_bytes or LEAST_WITH_ENGINE) < LEAST_WITH_ENGINE:
        raise UsageError(
            "run the scenario", f"--memory of {(tuning.memory_bytes or 0) // 2**20} MiB",
            "a guest with a container Engine needs at least 1 GiB",
            "leave --memory out to take what was planned",
        )  # fmt: skip
    if folder is not None:
        refuse_taken(folder)
    kernel = None if plan.host == "host" else lab_kernel()
    text = prepared.scenario.resolved_yaml()
    code_snapshot(cache_root())
    with HostLedger(cache_root()) as ledger:
        if folder is None:
            run = make_default_folder(plan.scenario, plan.seed, ledger=ledger)
        else:
            run = make_folder(folder, ledger)
        with marked_unless_finished(run, ledger):
            origin = provenance(plan.seed, kernel, text, plan.defects)
            write_inputs(run, text, plan, prepared.requests, origin)
            with _engine(prepared, run, kernel, ledger, say) as engine:
                orders = replace(_orders(run, prepared, tuning), engine=engine)
                outcome = _boot(prepared, orders, kernel, run, watch)
            _raise_failure(run, outcome)
            return analyse(run, prepared.scenario, outcome.wall_s, outcome.virtual_s)


def _refuse_on_host(plan: Plan) -> None:
    if plan.lab == "compose":
        raise UsageError(
            "run the scenario", "--lab compose --on host",
            "containers on the host are started by Compose itself",
            f"testbed compose {plan.scenario} > compose.yaml, then docker compose up",
        )  # fmt: skip
    refuse_host(read_host_kernel(), plan.agents[0].tcp)


def _boot(
    prepared: Prepared, orders: Orders, kernel: Kernel | None, run: Path, watch: Watch | None
) -> Outcome:
    """Boots the guest; under a real clock the machine around it is watched as well."""
    if not orders.real:
        return boot(kernel, orders, cache_root(), watch)
    host = HostWatch()

    def both(progress: Progress, wall_s: float) -> None:
        host.look()
        if watch is not None:
            watch(progress, wall_s)

    outcome = boot(kernel, orders, cache_root(), both)
    host.tell(run, prepared.plan.scale)
    return outcome


@contextmanager
def _engine(
    prepared: Prepared, run: Path, kernel: Kernel | None, ledger: HostLedger,
    say: Callable[[str], None],
) -> Iterator[Path | None]:  # fmt: skip
    """What containers need besides the run folder: the folder of an Engine."""
    if prepared.plan.lab == "mininet" or kernel is None:
        yield None
        return
    from testbed.run.containers import lent_engine

    with lent_engine(run, kernel, cache_root(), ledger, say) as engine:
        yield engine


def _orders(run: Path, prepared: Prepared, tuning: Tuning) -> Orders:
    plan = prepared.plan
    return Orders(
        run_folder=run,
        program=("-m", "testbed.run.inside", "/mnt/run"),
        memory_bytes=tuning.memory_bytes or plan.guest.memory_bytes,
        entropy_seed=plan.guest.entropy_seed,
        start_ns=plan.guest.start_ns,
        real=plan.clock == "real",
        on_host=plan.host == "host",
        stuck_after_s=tuning.stuck_after_s,
        shown={} if prepared.weights is None else {"weights": prepared.weights.parent},
    )


def analyse(
    run: Path, scenario: Scenario, wall_s: float | None = None, virtual_s: float | None = None
) -> Finished:
    """Phase three: reference, metrics, verdict, report; can be redone at any time.

    Raises:
        UsageError: ``run`` is no run folder; nothing is written there.
        TestbedError: the record cannot be analysed. The folder then says so: its verdict
            is invalid, and figures and report of an earlier analysis are gone.
            A run that never reached its end still says so afterwards.
    """
    require_run_folder(run)
    mark = read_mark(run)
    checks = CHECKS if mark is None else (TookPlace(mark), *CHECKS)
    try:
        metrics = compute(run, wall_s, virtual_s)
        compute_reference(run)
        verdict = judge(run, expectation(scenario, scale_of(run).size), checks)
        write_report(run)
    except KeyboardInterrupt as error:
        spoil(run, *_ANALYSED, error)
        raise
    except TestbedError as error:
        raise spoil_again(run, *_ANALYSED, error) from error
    except Exception as error:  # of whatever kind: an old pass must not outlive it
        raised = AnalysisError(
            "analyse the run", str(run), f"{type(error).__name__}: {error}",
            "a file of the run is not as it was written; run the scenario again",
        )  # fmt: skip
        raise spoil_again(run, *_ANALYSED, raised) from error
    return Finished(run, verdict, metrics)


def compute_reference(run: Path) -> None:
    """Lets one uninterrupted engine answer every request, in a process of its own."""
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    if not any(agent["role"] == Role.DECODE.value for agent in plan["agents"]):
        return
    done = run_module("testbed_agents.reference", str(run))
    if done.status != 0:
        raise AnalysisError(
            "compute the reference answers", str(run), done.err.strip()[-2000:], "see above"
        )


def _raise_failure(run: Path, outcome: Outcome) -> None:
    """Raises in this process what failed inside the guest."""
    if outcome.status == 0:
        return
    path = run / "failure.json"
    if not path.is_file():
        raise LabError(
            "run the lab", str(run),
            f"the lab program ended with status {outcome.status}:\n{tail(run / 'logs/guest.log')}",
            "see logs/guest.log",
        )  # fmt: skip
    failure = json.loads(path.read_text(encoding="utf-8"))
    kind = _RAISED.get(failure.pop("kind"), LabError)
    raise kind(**failure)
