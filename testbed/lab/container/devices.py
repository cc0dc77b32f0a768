"""Finds a container's devices by the addresses that Docker gave, and gives them the plan's names.

Which network of a container becomes eth0 is Docker's choice, so names say nothing.
"""

from __future__ import annotations

import time

from pyroute2 import IPRoute

from testbed.contract.segment import Seat
from testbed.errors import LabError

_STEP_S = 0.02


def find_devices(socket: IPRoute, seats: tuple[Seat, ...], until_ns: int) -> dict[str, int]:
    """Interface index of each seat's device, by its plan name; waits for those that are late.

    Raises:
        LabError: a device is not there at ``until_ns`` (CLOCK_REALTIME).
    """
    while True:
        indexes = {
            str(entry.get_attr("IFA_ADDRESS")): int(entry["index"])
            for entry in socket.get_addr(family=2)
        }
        missing = [seat for seat in seats if seat.address not in indexes]
        if not missing:
            return {seat.device: indexes[seat.address] for seat in seats}
        if time.time_ns() >= until_ns:
            raise LabError(
                "find a container's devices",
                ", ".join(f"{seat.device} ({seat.address})" for seat in missing),
                "no device has this address", "start all services of the compose file",
            )  # fmt: skip
        time.sleep(_STEP_S)


def take_over(socket: IPRoute, seat: Seat, index: int) -> None:
    """Gives a device the plan's name and hardware address, and takes the placeholder address."""
    socket.link("set", index=index, state="down")
    socket.flush_addr(index=index)
    socket.link("set", index=index, ifname=seat.device, address=seat.mac)
    socket.link("set", index=index, state="up")
