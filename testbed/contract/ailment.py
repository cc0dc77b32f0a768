"""What an agent does to itself, to one of its pools, or to what it sends: SI integers.

``peer`` is the receiver of a pair whose sender the agent is. Those that hit single connections,
transfers or requests say so in the record, one ``fault.hit`` each.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from testbed.contract.record import Record


class SlowCompute(Record):
    """Every step of the agent takes so many times its profile."""

    kind: Literal["slow"] = "slow"
    factor: float = Field(gt=1)


class Stall(Record):
    """The agent reads no KV from its connections: their windows close."""

    kind: Literal["stall"] = "stall"


class FewDescriptors(Record):
    """The agent may open so many files and sockets more, and no others."""

    kind: Literal["descriptors"] = "descriptors"
    left: int = Field(ge=0)


class Jump(Record):
    """The wall clock that the agent reads is off by so much."""

    kind: Literal["clock"] = "clock"
    offset_ns: int


class Backlog(Record):
    """The agent accepts no data connection; the kernel holds ``length`` + 1 for it."""

    kind: Literal["backlog"] = "backlog"
    length: int = Field(ge=0)


class Silence(Record):
    """The agent hears control messages so much later; None: not before the fault is over."""

    kind: Literal["silence"] = "silence"
    delay_ns: int | None = Field(default=None, gt=0)


class Leave(Record):
    """The client leaves requests. ``requests`` names them; empty, each by the chance ``share``.

    A request is left ``after_ns`` after it was sent, or when ``tokens`` of its tokens were shown;
    without either, when the fault begins: the one whose transfer the fault waited for.
    """

    kind: Literal["leave"] = "leave"
    clean: bool
    requests: tuple[int, ...] = ()
    share: float = Field(gt=0, le=1)
    seed: int = Field(ge=0)
    after_ns: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, gt=0)


class Shrink(Record):
    """The pool of a pair has so many connections fewer."""

    kind: Literal["shrink"] = "shrink"
    peer: str
    lose: int = Field(gt=0)


class Leak(Record):
    """Every ``each``-th loan of the pool of a pair is never given back."""

    kind: Literal["leak"] = "leak"
    peer: str
    each: int = Field(gt=0)


class FewPorts(Record):
    """The pool of a pair may use the first ``left`` of its source ports."""

    kind: Literal["ports"] = "ports"
    peer: str
    left: int = Field(gt=0)


class DropConnection(Record):
    """One connection of a pair ends, in order or by a reset."""

    kind: Literal["drop-connection"] = "drop-connection"
    peer: str
    connection: int = Field(ge=0)
    clean: bool


class SkipChunk(Record):
    """A chunk of a transfer is never sent: by number from 0, None the last one.

    ``transfer`` counts those of the pair that begin under the fault, from 1; None is each.
    """

    kind: Literal["skip-chunk"] = "skip-chunk"
    peer: str
    chunk: int | None = Field(default=None, ge=0)
    transfer: int | None = Field(default=None, gt=0)


class Stale(Record):
    """The pages of a transfer are not what their digests say; ``transfer`` as ``SkipChunk``."""

    kind: Literal["stale"] = "stale"
    peer: str
    transfer: int | None = Field(default=None, gt=0)


PairEffect = Shrink | Leak | FewPorts | DropConnection | SkipChunk | Stale
AgentEffect = Annotated[
    SlowCompute | Stall | FewDescriptors | Jump | Backlog | Silence | Leave | PairEffect,
    Field(discriminator="kind"),
]
