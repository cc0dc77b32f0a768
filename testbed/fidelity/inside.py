"""Runs inside the guest: builds a network, measures its links, takes it down.

The only program the guest starts for ``testbed calibrate``. Reads ``calibration.json`` of
the run folder; writes ``ledger.jsonl`` and ``fidelity.json``. A link that is off is a row,
not an error: whoever asked decides what it means.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from testbed.contract.progress import FOLDER, Mark
from testbed.fidelity.calibrate import calibrate_links
from testbed.fidelity.order import FILE, CalibrationOrder
from testbed.fidelity.row import CalibrationRow
from testbed.lab.ledger import Ledger
from testbed.lab.mininet.lab import MininetLab
from testbed.lab.wires import Wires


def calibrate_run(run: Path) -> None:
    """The life of one calibration inside the guest. Raises LabError where building fails."""
    order = CalibrationOrder.model_validate_json((run / FILE).read_text(encoding="utf-8"))
    network = order.network
    mark = Mark(run / FOLDER, "calibration")
    ledger = Ledger(run / "ledger.jsonl")
    try:
        with MininetLab(network, ledger) as lab:
            with Wires(network, lab.paths()) as wires:
                wires.apply()
            rows: list[CalibrationRow] = []
            for link in network.links:
                mark.touch(time.time_ns())
                alone = network.model_copy(update={"links": (link,)})
                rows.extend(calibrate_links(alone, lab.paths(), order.effort))
        text = json.dumps({"rows": [row.model_dump() for row in rows]}, indent=1)
        (run / "fidelity.json").write_text(text, encoding="utf-8")
    finally:
        ledger.close()


if __name__ == "__main__":
    calibrate_run(Path(sys.argv[1]))
