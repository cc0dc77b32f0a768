"""What a guest is told to calibrate: ``calibration.json`` of the run folder."""

from __future__ import annotations

from testbed.contract.network import Network
from testbed.contract.record import Record
from testbed.fidelity.calibrate import Effort

FILE = "calibration.json"


class CalibrationOrder(Record):
    """Build this network, measure all its links with this effort."""

    network: Network
    effort: Effort
