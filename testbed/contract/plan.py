"""The plan: a frozen value, a pure function of (scenario, host facts, seed).

It is JSON on disk before the first namespace exists; the lab and the agents'
configuration files are derived from it and from nothing else.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from testbed.contract.agent import AgentConfig
from testbed.contract.defect import Defect
from testbed.contract.demand import Demand
from testbed.contract.fault import PlannedFault
from testbed.contract.network import Network
from testbed.contract.record import Record
from testbed.contract.scale import FULL, Scale, paced
from testbed.contract.service import Cost, Level


class Estimate(Record):
    """What a run will take on this machine; printed by ``testbed plan``."""

    wall_s: float
    guest_memory_bytes: int
    host_memory_bytes: int
    disk_bytes: int
    payload_bytes: int
    virtual_s: float


class Guest(Record):
    """The lab guest of a virtual-clock run."""

    memory_bytes: int = Field(ge=256 * 1024 * 1024)
    entropy_seed: int
    start_ns: int
    """CLOCK_REALTIME at guest boot (a fixed date)."""
    barrier_ns: int
    """CLOCK_REALTIME of the barrier that all agents pass before any connection opens."""


class Offered(Record):
    """What the workload asks of the WAN over the arrival window (direction P to MD)."""

    payload_bytes: int
    legs: int
    leg_payload_bps: float
    """Payload rate of one leg: the leg's rate less frame, IP and TCP headers."""
    load: float
    byte_scale: float
    """Factor that rescaled the raw draw to the wanted load (1.0 = raw draw)."""
    raw_load: float


def _has_no_defects(defects: tuple[Defect, ...]) -> bool:
    return not defects


class Plan(Record):
    """Everything a run is, before it touches the world."""

    schema_version: Literal[1] = 1
    scenario: str
    seed: int
    lab: Literal["mininet", "compose"]
    clock: Literal["virtual", "real"]
    host: Literal["guest", "host"]
    guest: Guest
    scale: Scale = FULL
    """Full under the virtual clock, unless asked otherwise."""
    network: Network
    """As it is built: ``scale.slow`` times slower than what is emulated."""
    demand: Demand | None = None
    """What the machine must carry under the real clock."""
    agents: tuple[AgentConfig, ...]
    faults: tuple[PlannedFault, ...] = ()
    """Their rates and delays are as built, like the network's; their times are emulated."""
    defects: tuple[Defect, ...] = Field(default=(), exclude_if=_has_no_defects)
    """Protections that are off, as every agent is told."""
    offered: Offered
    estimate: Estimate
    model: str
    level: Level = Level()
    """The service level that goodput is counted by."""
    cost: Cost | None = None
    """What the hardware costs; None where the scenario has no prices."""
    summary: tuple[tuple[str, str], ...] = ()
    """Human-readable (key, value) pairs that every report shows."""

    @property
    def emulated(self) -> Network:
        """The network in emulated time, as events count it."""
        return paced(self.network, 1 / self.scale.slow)
