"""The ``pool:`` part of a scenario: by which discipline transfers get connections.

Told apart by the key ``discipline``; without it the pool is a semaphore (``fifo``), so that
``pool: {size: 4}`` is one of four connections.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, cast

from pydantic import Discriminator, Field, StrictBool, Tag

from testbed.contract.pool import (
    MOST_CONNECTIONS,
    MOST_STRIPES,
    DisciplineRule,
    Fifo,
    Lanes,
    Lifo,
    Order,
    PerTransfer,
    Pool,
)
from testbed.contract.record import Record
from testbed.scenario.entry import Count
from testbed.units import Duration, Size

LAST_SOURCE_PORT = 60_999
"""Linux's default local port range ends here; what lies above stays free for clients."""
FIRST_EPHEMERAL_PORT = 32_768
FIRST_PORT = 1_024
EPHEMERAL_PORTS = 28_232
"""As many as Linux hands out by default: 32768 to 60999."""

DISCIPLINE = "discipline"
DEFAULT = "fifo"
UNKNOWN = "unknown_discipline"
"""Type of the fault of a discipline that there is not."""

PoolSize = Annotated[int, Field(strict=True, ge=1, le=MOST_CONNECTIONS)]
Port = Annotated[int, Field(strict=True, ge=FIRST_PORT, lt=65_536)]
StripeCount = Annotated[int, Field(strict=True, ge=1, le=MOST_STRIPES)]
PortCount = Annotated[int, Field(strict=True, ge=1, lt=65_536)]


class PoolKeys(Record):
    """What pools of every discipline have."""

    transfer_timeout: Duration = Duration(300 * 10**9)
    chunk: Size = Size(2 * 2**20)
    """Payload bytes of one frame of the transfer protocol."""
    source_port: Port = 20_000
    """Connection i has source port ``source_port + i``, so that which leg it takes
    is a property of the scenario."""

    stripes: StripeCount = 1
    """Most connections that one transfer goes over at once: of those that nobody else wants when
    it begins. Each carries a chunk at least."""

    preempt: StrictBool = False
    """Whether a transfer that comes first by ``order`` may borrow the connection of another
    between two of its chunks."""

    def pool(
        self,
        rule: DisciplineRule,
        size: int | None,
        queue: int,
        acquire_timeout: Duration,
        order: Order,
    ) -> Pool:
        """The same as agents see it, in integers."""
        return Pool(
            size=size,
            queue=queue,
            acquire_timeout_ns=acquire_timeout.ns,
            transfer_timeout_ns=self.transfer_timeout.ns,
            chunk_bytes=self.chunk.bytes,
            source_port=self.source_port,
            discipline=rule,
            order=order,
            stripes=self.stripes,
            preempt=self.preempt,
        )


class FifoPoolChoice(PoolKeys):
    """A semaphore: persistent TCP connections, all opened at the start."""

    discipline: Literal["fifo"] = "fifo"
    size: PoolSize = 64
    queue: Count = 100_000
    """Transfers that may wait for one."""
    acquire_timeout: Duration = Duration(300 * 10**9)
    order: Order = Order.FIRST_COME

    def resolve(self) -> Pool:
        """The same as agents see it."""
        return self.pool(Fifo(), self.size, self.queue, self.acquire_timeout, self.order)


class LanesPoolChoice(PoolKeys):
    """Few connections, opened when they are first needed; who waits too long is refused."""

    discipline: Literal["lanes"]
    size: PoolSize = 4
    queue: Count = 1_024
    acquire_timeout: Duration = Duration(10**9)
    """For admission, opening included."""
    order: Order = Order.FIRST_COME

    def resolve(self) -> Pool:
        """The same as agents see it."""
        return self.pool(Lanes(), self.size, self.queue, self.acquire_timeout, self.order)


class GrowingKeys(PoolKeys):
    """What pools have that open as many connections as they need."""

    size: PoolSize | None = None
    """Most connections at a time; None: no bound but the source ports, and nobody waits."""
    queue: Count | None = None
    """Transfers that may wait where there is a size; None: 100,000."""
    acquire_timeout: Duration = Duration(300 * 10**9)
    """For a connection, opening included."""
    order: Order | None = None
    """Of those that wait where there is a size; None: first-come."""
    ports: PortCount = EPHEMERAL_PORTS
    """Source ports, taken in turn."""

    def grown(self, rule: DisciplineRule) -> Pool:
        """The same as agents see it."""
        queue = (100_000 if self.queue is None else self.queue) if self.size else 0
        order = self.order or Order.FIRST_COME
        return self.pool(rule, self.size, queue, self.acquire_timeout, order)


class PerTransferPoolChoice(GrowingKeys):
    """A fresh connection for each transfer, closed after it."""

    discipline: Literal["per-transfer"]

    def resolve(self) -> Pool:
        """The same as agents see it."""
        return self.grown(PerTransfer(ports=self.ports))


class LifoPoolChoice(GrowingKeys):
    """The connection used last goes first; idle ones are closed."""

    discipline: Literal["lifo"]
    idle_timeout: Duration = Duration(10 * 10**9)
    """The default is that of fasthttp, a client whose pool is such a stack."""

    def resolve(self) -> Pool:
        """The same as agents see it."""
        return self.grown(Lifo(ports=self.ports, idle_timeout_ns=self.idle_timeout.ns))


def _named(value: object) -> str:
    """Which discipline a mapping or a choice names."""
    if isinstance(value, dict):
        named = cast("dict[str, object]", value).get(DISCIPLINE)
        return DEFAULT if named is None else str(named)
    return str(getattr(value, DISCIPLINE, DEFAULT))


PoolChoice: TypeAlias = Annotated[
    Annotated[FifoPoolChoice, Tag("fifo")]
    | Annotated[PerTransferPoolChoice, Tag("per-transfer")]
    | Annotated[LifoPoolChoice, Tag("lifo")]
    | Annotated[LanesPoolChoice, Tag("lanes")],
    Discriminator(
        _named,
        custom_error_type=UNKNOWN,
        custom_error_message="unknown discipline; known: 'fifo', 'per-transfer', 'lifo', 'lanes'",
    ),
]
