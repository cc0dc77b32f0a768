"""Faults that an agent applies itself: to its own work, to a pool, to what it sends or asks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from testbed.contract.ailment import (
    AgentEffect,
    Backlog,
    DropConnection,
    FewDescriptors,
    FewPorts,
    Jump,
    Leak,
    Leave,
    PairEffect,
    Shrink,
    Silence,
    SkipChunk,
    SlowCompute,
    Stale,
    Stall,
)
from testbed.scenario.entry import Count, Name, Number
from testbed.scenario.timed import ALWAYS, Names, Timed, key
from testbed.units import Duration, Share

Few = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]


class OnAgents(Timed):
    """A fault inside agents."""

    node: Names = key("an agent of the plan, or a list of agents")

    @abstractmethod
    def effect(self) -> AgentEffect:
        """What the agent does to itself, in SI integers."""


class SlowFault(OnAgents):
    """Every step takes so many times its profile: a slow processor or accelerator."""

    EXAMPLE = "{kind: slow, node: md1, factor: 3.0, at: 2 s, duration: 2 s}"

    kind: Literal["slow"]
    factor: Number = key("how many times longer, above 1")

    def effect(self) -> AgentEffect:
        return SlowCompute(factor=self.factor)

    @model_validator(mode="after")
    def _slower(self) -> Self:
        if self.factor <= 1:
            raise ValueError("factor must be above 1")
        return self


class StallFault(OnAgents):
    """The agent reads no KV from its connections: their windows close."""

    EXAMPLE = "{kind: stall, node: md1, at: 2 s, duration: 500 ms}"

    kind: Literal["stall"]

    def effect(self) -> AgentEffect:
        return Stall()


class DescriptorsFault(OnAgents):
    """The agent may open so many files and sockets more, and no others."""

    EXAMPLE = "{kind: descriptors, node: p1, left: 2, at: 2 s}"

    kind: Literal["descriptors"]
    left: Few = key("how many more than are open when it begins")

    def effect(self) -> AgentEffect:
        return FewDescriptors(left=self.left)


class ClockFault(OnAgents):
    """The wall clock that the agent reads jumps ahead or back, and in the end the other way."""

    EXAMPLE = "{kind: clock, node: md1, ahead: 1 h, at: 2 s, duration: 1 s}"

    kind: Literal["clock"]
    ahead: Duration | None = key("how far ahead; or behind", None)
    behind: Duration | None = key("how far back; or ahead", None)

    def effect(self) -> AgentEffect:
        ahead, behind = (0 if one is None else one.ns for one in (self.ahead, self.behind))
        return Jump(offset_ns=ahead - behind)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        far = [one for one in (self.ahead, self.behind) if one is not None]
        if len(far) != 1 or far[0].ns == 0:
            raise ValueError("give ahead or behind, longer than 0 ns")
        return self


class BacklogFault(OnAgents):
    """The agent accepts no data connection: the queue of those that wait overflows."""

    EXAMPLE = "{kind: backlog, node: md1, length: 4, at: 2 s, duration: 3 s}"

    kind: Literal["backlog"]
    length: Annotated[int, Field(strict=True, ge=0, le=4_096)] = key(
        "what listen() is given: the kernel queues one more"
    )

    def effect(self) -> AgentEffect:
        return Backlog(length=self.length)


class SilenceFault(OnAgents):
    """The agent hears control messages late, or not before the fault is over."""

    EXAMPLE = "{kind: silence, node: p1, delay: 5 s, at: 2 s, duration: 10 s}"

    kind: Literal["silence"]
    delay: Duration | None = key("how late; left out, when the fault is over", None)

    def effect(self) -> AgentEffect:
        return Silence(delay_ns=None if self.delay is None else self.delay.ns)

    @model_validator(mode="after")
    def _later(self) -> Self:
        if self.delay is not None and self.delay.ns == 0:
            raise ValueError("delay must be longer than 0 ns; left out, it hears nothing")
        return self


class LeaveFault(OnAgents):
    """The client disconnects from requests that it sends while the fault is in force."""

    EXAMPLE = "{kind: leave, node: c1, share: 25 %, after: 300 ms, how: unclean, at: 0 s}"

    kind: Literal["leave"]
    how: Literal["clean", "unclean"] = key("clean: the router is told at once; unclean: nobody is")
    after: Duration | None = key("how long after a request was sent; or tokens", None)
    tokens: Count | None = key("how many of its tokens it shows before; or after", None)
    requests: Annotated[tuple[Few, ...], Field(min_length=1, max_length=10_000)] | None = key(
        "numbers of the requests, from 0; or share", None
    )
    share: Share = key("chance of each request on its own, from the run's seed", ALWAYS)

    def effect(self) -> AgentEffect:
        return Leave(
            clean=self.how == "clean",
            requests=self.requests or (),
            share=self.share.fraction,
            seed=0,
            after_ns=None if self.after is None else self.after.ns,
            tokens=self.tokens,
        )

    @model_validator(mode="after")
    def _selects(self) -> Self:
        if self.when is not None:
            selects = self.after, self.tokens, self.requests
            if any(one is not None for one in selects) or self.share != ALWAYS:
                raise ValueError("with when, the request of that transfer is left: give how alone")
        elif (self.after is None) == (self.tokens is None):
            raise ValueError("give after or tokens: when a request is left")
        if self.requests is not None and self.share != ALWAYS:
            raise ValueError("give requests or share, not both")
        if self.share.steps == 0:
            raise ValueError("share must be above 0 %, or nobody leaves")
        return self


class OnPairs(Timed):
    """A fault between a sender of KV and one of its receivers, which the sender applies."""

    pair: tuple[Name, Name] = key("a sender of KV and its receiver: [p1, md1]")

    @abstractmethod
    def effect(self) -> PairEffect:
        """What the sender does to itself, in SI integers."""


class ShrinkFault(OnPairs):
    """The pool of a pair loses connections, idle ones at once, others behind their transfer."""

    EXAMPLE = "{kind: shrink, pair: [p1, md1], lose: 3, at: 2 s, duration: 2 s}"

    kind: Literal["shrink"]
    lose: Count = key("how many connections, at most the pool's size")

    def effect(self) -> PairEffect:
        return Shrink(peer=self.pair[1], lose=self.lose)


class LeakFault(OnPairs):
    """Some loans of a pool are never given back, not even behind the fault."""

    EXAMPLE = "{kind: leak, pair: [p1, md1], each: 5, at: 1 s}"

    kind: Literal["leak"]
    each: Count = key("every so many-th loan; 1 is every one")

    def effect(self) -> PairEffect:
        return Leak(peer=self.pair[1], each=self.each)


class PortsFault(OnPairs):
    """The pool of a pair has few source ports left, of those that it takes in turn."""

    EXAMPLE = "{kind: ports, pair: [p1, md1], left: 20, at: 1 s, duration: 10 s}"

    kind: Literal["ports"]
    left: Count = key("how many source ports it may use")

    def effect(self) -> PairEffect:
        return FewPorts(peer=self.pair[1], left=self.left)


class DropConnectionFault(OnPairs):
    """One connection of a pool ends, whatever it carries; it takes no duration."""

    EXAMPLE = "{kind: drop-connection, pair: [p1, md1], connection: 2, how: reset, at: 2 s}"
    INSTANT: ClassVar[bool] = True

    kind: Literal["drop-connection"]
    connection: Few = key("its number, from 0: it has source port pool.source_port + number")
    how: Literal["clean", "reset"] = key("clean: the sender ends its half; reset: both, at once")

    def effect(self) -> PairEffect:
        return DropConnection(
            peer=self.pair[1], connection=self.connection, clean=self.how == "clean"
        )


class SkipChunkFault(OnPairs):
    """A chunk of a transfer is never sent."""

    EXAMPLE = "{kind: skip-chunk, pair: [p1, md1], chunk: 2, transfer: 1, at: 1 s}"

    kind: Literal["skip-chunk"]
    chunk: Count | Literal["last"] = key(
        "its number, from 1; last leaves the receiver waiting", "last"
    )
    transfer: Count | None = key(
        "which of those that begin under the fault, from 1; left out, each", None
    )

    def effect(self) -> PairEffect:
        chunk = None if self.chunk == "last" else int(self.chunk) - 1
        return SkipChunk(peer=self.pair[1], chunk=chunk, transfer=self.transfer)


class StaleFault(OnPairs):
    """The sender's pages hold something else by the time at which they are sent."""

    EXAMPLE = "{kind: stale, pair: [p1, md1], transfer: 1, at: 1 s}"

    kind: Literal["stale"]
    transfer: Count | None = key(
        "which of those that begin under the fault, from 1; left out, each", None
    )

    def effect(self) -> PairEffect:
        return Stale(peer=self.pair[1], transfer=self.transfer)


AgentChoice = (
    SlowFault | StallFault | DescriptorsFault | ClockFault | BacklogFault | SilenceFault
    | LeaveFault | ShrinkFault | LeakFault | PortsFault | DropConnectionFault | SkipChunkFault
    | StaleFault
)  # fmt: skip
AGENT_KINDS: tuple[type[OnAgents | OnPairs], ...] = (
    SlowFault, StallFault, DescriptorsFault, ClockFault, BacklogFault, SilenceFault, LeaveFault,
    ShrinkFault, LeakFault, PortsFault, DropConnectionFault, SkipChunkFault, StaleFault,
)  # fmt: skip
"""In the order in which lists show them."""
