"""Calibrates a topology or a tc profile: network, folder, guest, rows, exit status.

A topology is built as it is and all its links are measured; a tc profile is put on
the one leg between two routers, and only that leg is built.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from testbed.contract.network import Network
from testbed.errors import ExitStatus, LabError, UsageError
from testbed.fidelity.calibrate import Effort
from testbed.fidelity.order import FILE, CalibrationOrder
from testbed.fidelity.row import CalibrationRow
from testbed.lab.guest.boot import Kernel, Orders, boot, code_snapshot, tail
from testbed.lab.guest.kernel.cache import cache_root
from testbed.lab.hostledger import HostLedger
from testbed.plan.derive import derived_seed
from testbed.plan.make import GUEST_START_NS
from testbed.plan.network import build_network
from testbed.plan.part import part_of
from testbed.plan.roster import roster
from testbed.run.execute import lab_kernel
from testbed.run.folder import make_default_folder, make_folder, refuse_taken, write_json
from testbed.run.mark import marked_unless_finished
from testbed.run.provenance import provenance
from testbed.scenario import Scenario
from testbed.scenario.alone import PROFILE_LINK, profile_alone, topology_alone
from testbed.scenario.data import DataKind, names
from testbed.scenario.nearest import listing

INSIDE = ("-m", "testbed.fidelity.inside", "/mnt/run")
MEMORY_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class PreparedCalibration:
    """A calibration that could start now; ``title`` says of what."""

    title: str
    seed: int
    order: CalibrationOrder


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration that took place."""

    folder: Path
    rows: tuple[CalibrationRow, ...]
    wall_s: float

    @property
    def exit_status(self) -> ExitStatus:
        """INVALID as soon as one quantity is off, or where nothing was compared."""
        good = bool(self.rows) and all(row.ok for row in self.rows)
        return ExitStatus.PASS if good else ExitStatus.INVALID

    def in_words(self) -> str:
        """One line for people."""
        good = sum(row.ok for row in self.rows)
        word = "pass" if self.exit_status is ExitStatus.PASS else "invalid"
        return f"{word}: {good} of {len(self.rows)} rows are as asked, wall {self.wall_s:.1f} s"


def prepare_calibration(
    name: str, effort: Effort, overrides: tuple[str, ...] = (), seed: int | None = None
) -> PreparedCalibration:
    """Looks the name up and plans its network; touches nothing.

    Raises:
        UsageError: neither a topology nor a profile has this name; lists those that exist.
        ScenarioError, PlanError: an override is wrong, or the network cannot be.
    """
    if seed is not None:
        overrides = (*overrides, f"seed={seed}")
    if name in names(DataKind.TOPOLOGIES):
        scenario = topology_alone(name, None, overrides)
        title, network = f"topology {name}", _network(scenario)
    elif name in names(DataKind.TC_PROFILES):
        scenario = profile_alone(name, overrides)
        title, network = f"tc profile {name}", part_of(_network(scenario), PROFILE_LINK)
    else:
        known = (*names(DataKind.TOPOLOGIES), *names(DataKind.TC_PROFILES))
        raise UsageError(
            "calibrate", name[:60], listing(name, known), "name a topology or a tc profile"
        )
    return PreparedCalibration(
        title, scenario.seed, CalibrationOrder(network=network, effort=effort)
    )


def calibrate(prepared: PreparedCalibration, folder: Path | None) -> Calibrated:
    """Measures in a guest of its own and keeps everything in a new folder.

    Raises:
        HostError: there is no lab kernel, or the guest cannot start.
        UsageError: the folder exists.
        LabError: the network could not be built, or the guest died. The folder then keeps
            everything and the mark of an unfinished run, as after Ctrl-C and SIGTERM.
    """
    if folder is not None:
        refuse_taken(folder)
    kernel = lab_kernel()
    code_snapshot(cache_root())
    with HostLedger(cache_root()) as ledger:
        if folder is None:
            name = f"calibrate-{prepared.title.split()[-1]}"
            run = make_default_folder(name, prepared.seed, ledger=ledger)
        else:
            run = make_folder(folder, ledger)
        with marked_unless_finished(run, ledger):
            return _measure(prepared, run, kernel)


def is_calibration(folder: Path) -> bool:
    """Whether a folder was left by a calibration, which has rows and no analysis."""
    return (folder / FILE).is_file()


def _measure(prepared: PreparedCalibration, run: Path, kernel: Kernel) -> Calibrated:
    text = prepared.order.model_dump_json(indent=1)
    (run / FILE).write_text(text, encoding="utf-8")
    facts = provenance(prepared.seed, kernel, text)
    facts["calibration_sha256"] = facts.pop("scenario_sha256")
    write_json(run / "provenance.json", facts)
    orders = Orders(
        run_folder=run,
        program=INSIDE,
        memory_bytes=MEMORY_BYTES,
        entropy_seed=derived_seed(prepared.seed, "guest", "entropy"),
        start_ns=GUEST_START_NS,
    )
    outcome = boot(kernel, orders, cache_root())
    if outcome.status != 0:
        raise LabError(
            "calibrate", prepared.title,
            f"the program in the guest ended with status {outcome.status}:\n"
            f"{tail(run / 'logs' / 'guest.log')}",
            f"see {run / 'logs' / 'guest.log'}",
        )  # fmt: skip
    return Calibrated(run, read_rows(run), outcome.wall_s)


def read_rows(run: Path) -> tuple[CalibrationRow, ...]:
    """The rows of a calibration's ``fidelity.json``."""
    content = json.loads((run / "fidelity.json").read_text(encoding="utf-8"))
    return tuple(CalibrationRow.model_validate(row) for row in content["rows"])


def _network(scenario: Scenario) -> Network:
    return build_network(scenario, roster(scenario), scenario.seed)
