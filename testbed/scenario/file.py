"""The scenario file: one study, as an author writes it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from testbed.contract.defect import Defect
from testbed.contract.record import Record
from testbed.scenario.entry import Line, Name, Seed, TokenId
from testbed.scenario.expect import Expect
from testbed.scenario.injection import MOST_FAULTS, FaultChoice
from testbed.scenario.pool import FifoPoolChoice, PoolChoice
from testbed.scenario.profile import LinkChoice
from testbed.scenario.profiles import ModelName
from testbed.scenario.realtime import RealTimeChoice
from testbed.scenario.service import PricesChoice, SlaChoice
from testbed.scenario.serving import ServingChoice
from testbed.scenario.shape import ShapeChoice
from testbed.scenario.workload import Workload
from testbed.units import Duration, Size


class TopologyChoice(Record):
    """Which topology, and its parameters where they differ from the defaults."""

    name: Name
    parameters: dict[Name, Annotated[int, Field(strict=True, ge=0)]] = Field(default_factory=dict)


class WindowChoice(Record):
    """Phases after the barrier; requests arrive in warm-up and measure."""

    warm_up: Duration = Duration(0)
    measure: Duration
    drain: Duration
    """Time for open requests to end after the last arrival; later ones have failed."""


class ModelChoice(Record):
    """Which real model makes the substance, and how it picks tokens."""

    name: ModelName
    seed: Seed = 0
    """Seed of the weights of ``nano``; ``smollm2-135m`` has published weights."""
    sampling: Literal["greedy", "seeded"] | None = None
    """None takes the model's own: seeded for nano, greedy for smollm2-135m."""
    stop: tuple[TokenId, ...] | Literal["eos"] = ()
    """Tokens that end an answer early; ``eos`` takes those by which the model itself ends one."""


class TcpChoice(Record):
    """Socket options and sysctls of data connections."""

    congestion: Literal["cubic", "bbr", "reno", "dctcp"] = "cubic"
    send_buffer: Size = Size(32 * 2**20)
    receive_buffer: Size = Size(32 * 2**20)
    low_water: Size = Size(4 * 2**20)
    """Bytes that wake a receiver (SO_RCVLOWAT); fewer wake-ups, same timeline."""
    slow_start_after_idle: bool = True
    """Linux's default: a connection idle for longer than its RTO starts slowly again."""


def _is_empty(value: tuple[Defect, ...]) -> bool:
    return not value


class ScenarioFile(Record):
    """A file of ``scenarios/``."""

    name: Name
    description: Line
    assumptions: tuple[Line, ...] = ()
    """Why each value that nobody published was chosen."""
    topology: TopologyChoice
    links: dict[Name, LinkChoice] = Field(default_factory=dict)
    """Overrides per class of link."""
    seed: Seed = 1
    window: WindowChoice
    workload: Workload
    shape: ShapeChoice
    model: ModelChoice
    pool: PoolChoice = FifoPoolChoice()
    """The connection pool of every (sender, receiver) pair."""
    tcp: TcpChoice = TcpChoice()
    serving: ServingChoice | None = None
    """The serving plane; None where the workload says itself what is cached where."""
    sla: SlaChoice = SlaChoice()
    """The service level that goodput is counted by."""
    prices: PricesChoice | None = None
    """What the hardware costs; None gives no benefit-cost ratio."""
    verify: Literal["substance", "all"] = "substance"
    """``substance``: real KV is digested and padding stamped; ``all``: every byte."""
    faults: tuple[FaultChoice, ...] = Field(default=(), max_length=MOST_FAULTS)
    """What is done to links and nodes while the run is on."""
    defects: tuple[Defect, ...] = Field(default=(), exclude_if=_is_empty)
    """Protections that are off; only scenarios of the field library may name any."""
    expect: Expect = Expect()
    lab: Literal["mininet", "compose"] = "mininet"
    clock: Literal["virtual", "real"] = "virtual"
    real_time: RealTimeChoice | None = None
    """The scale under a real clock; None is full size and speed."""
