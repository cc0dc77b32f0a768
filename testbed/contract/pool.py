"""The connection pool of one (sender, receiver) pair: by which discipline, and its bounds."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from testbed.contract.record import Record

MOST_CONNECTIONS = 4096
"""Of a pool that has a size."""
MOST_STRIPES = 64

Ports = Annotated[int, Field(gt=0, lt=65_536)]


class Order(StrEnum):
    """Which of the waiting transfers gets the next connection."""

    FIRST_COME = "first-come"
    SMALLEST_FIRST = "smallest-first"
    """The fewest bytes; a large one may wait until it is refused."""
    EARLIEST_DEADLINE = "earliest-deadline"
    """The request that came first: one service level for all makes its deadline the earliest."""


class Fifo(Record):
    """A semaphore: all connections are opened at the start and kept, and the one that has been
    idle longest goes first, so that all are in use."""

    kind: Literal["fifo"] = "fifo"


class PerTransfer(Record):
    """A fresh connection for each transfer, closed after it. Its port then rests in TIME_WAIT, so
    ``ports`` source ports are taken in turn, each by connect() and not by bind()."""

    kind: Literal["per-transfer"] = "per-transfer"
    ports: Ports


class Lifo(Record):
    """The connection that was used last goes first; where none is idle another is opened. What
    has been idle for ``idle_timeout_ns`` is closed. ``ports`` as for ``PerTransfer``."""

    kind: Literal["lifo"] = "lifo"
    ports: Ports
    idle_timeout_ns: int = Field(gt=0)


class Lanes(Record):
    """Few connections, opened when they are first needed, and kept; the lowest goes first."""

    kind: Literal["lanes"] = "lanes"


DisciplineRule: TypeAlias = Annotated[
    Fifo | PerTransfer | Lifo | Lanes, Field(discriminator="kind")
]


def _is_fifo(value: DisciplineRule) -> bool:
    return value.kind == "fifo"


def _is_one(value: int) -> bool:
    return value == 1


def _is_false(value: bool) -> bool:
    return not value


def _is_first_come(value: Order) -> bool:
    return value is Order.FIRST_COME


class Pool(Record):
    """Everything that a pool is ruled by.

    At most ``queue`` transfers wait, each at most ``acquire_timeout_ns``, in which a connection
    that is opened for it must be open. Connection i has source port ``source_port + i``.
    The defaults are not written, so that a plan without a discipline stays as it was.
    """

    size: int | None = Field(gt=0, le=MOST_CONNECTIONS)
    """Most connections at a time; None: as many as there are source ports."""
    queue: int = Field(ge=0)
    acquire_timeout_ns: int = Field(gt=0)
    transfer_timeout_ns: int = Field(gt=0)
    chunk_bytes: int = Field(gt=0, le=64 * 1024 * 1024)
    source_port: int = Field(gt=1023, lt=65_536)
    discipline: DisciplineRule = Field(default=Fifo(), exclude_if=_is_fifo)
    order: Order = Field(default=Order.FIRST_COME, exclude_if=_is_first_come)
    stripes: int = Field(default=1, ge=1, le=MOST_STRIPES, exclude_if=_is_one)
    """Most connections that one transfer goes over at once; only one of them is waited for."""

    preempt: bool = Field(default=False, exclude_if=_is_false)
    """Whether one that comes before another by ``order`` may borrow its connection between two
    of its chunks."""

    @property
    def most(self) -> int:
        """How many connections there can be at a time: the size, else one a source port."""
        return self.size or self.numbers

    @property
    def numbers(self) -> int:
        """Connections bear numbers below this: one a source port."""
        return self._ports or 1

    @property
    def closes(self) -> bool:
        """Whether it closes connections while it is open, so that their ports rest."""
        return isinstance(self.discipline, PerTransfer | Lifo)

    @property
    def _ports(self) -> int | None:
        rule = self.discipline
        return rule.ports if isinstance(rule, PerTransfer | Lifo) else self.size

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        ports = self._ports
        if ports is None:
            raise ValueError(f"a pool of kind {self.discipline.kind} needs a size")
        if self.size is not None and ports < self.size:
            raise ValueError(f"{ports} source ports cannot hold {self.size} connections")
        return self
