"""What a router has under way, and who still works for it. Pure.

::

    open of a job:  P ──served──  RLD ──relayed──  MD ──released──  client ──ended──  gone

A name leaves ``open`` by its own word, or because it was lost; a job whose last name has
left is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.contract.role import Role
from testbed_agents.router.decide import Route


@dataclass(slots=True)
class Standing:
    """What the router believes about one instance."""

    role: Role
    site: str
    most: int
    """Sequences of a full batch; 0 for P, which has no such limit."""
    queued_tokens: int = 0
    active: set[int] = field(default_factory=set)
    """Jobs that it has or will get."""
    begun: set[int] = field(default_factory=set)
    """Of them, those that P is done with."""
    lost: bool = False
    """Gone: not chosen until it is found again."""


@dataclass(slots=True)
class Under:
    """A job under way."""

    route: Route
    client: str
    output_tokens: int
    uncached: int
    wire_bytes: int
    keys: tuple[int, ...]
    known: dict[str, int]
    """Blocks of it that P and MD were believed to hold."""
    tried: frozenset[str]
    """MDs of this attempt and of those before it."""
    open: set[str]
    """Who still works for it, its client included."""
    prefilled: bool = False
    main_lost: bool = False
    """MD is gone while RLD goes on, within its bounds."""

    @property
    def instances(self) -> tuple[str, ...]:
        """All instances of its route, in the order in which they are told."""
        names = (self.route.decode, self.route.relay, self.route.prefill)
        return tuple([name for name in names if name])


class Book:
    """Every instance and every job of one router."""

    def __init__(self, standing: dict[str, Standing]) -> None:
        self.standing = standing
        self.under: dict[int, Under] = {}

    def open(self, job: int, under: Under) -> None:
        """A job was routed."""
        self.under[job] = under
        self.standing[under.route.prefill].queued_tokens += under.uncached
        for name in (under.route.relay, under.route.decode):
            if name is not None:
                self.standing[name].active.add(job)

    def prefilled(self, job: int) -> None:
        """P has computed it, or never will."""
        under = self.under[job]
        if not under.prefilled:
            under.prefilled = True
            self.standing[under.route.prefill].queued_tokens -= under.uncached
            for name in (under.route.relay, under.route.decode):
                if name is not None and job in self.standing[name].active:
                    self.standing[name].begun.add(job)

    def leave(self, job: int, name: str) -> None:
        """``name`` does nothing more for a job. A repetition changes nothing."""
        under = self.under.get(job)
        if under is None:
            return
        under.open.discard(name)
        if name == under.route.prefill:
            self.prefilled(job)
            under.wire_bytes = 0
        if name in self.standing:
            self.standing[name].active.discard(job)
            self.standing[name].begun.discard(job)
        if not under.open:
            del self.under[job]

    def lose(self, name: str) -> tuple[tuple[int, Under], ...]:
        """An agent is gone; returns the jobs that it had a part in, oldest first."""
        if name in self.standing:
            self.standing[name].lost = True
        parts = tuple([(job, one) for job, one in self.under.items() if name in one.open])
        for job, _ in parts:
            self.leave(job, name)
        return parts

    def find(self, name: str) -> None:
        """An instance that was lost is back, and holds nothing of any job."""
        self.standing[name].lost = False

    def works_for(self, client: str) -> bool:
        """Whether anything of a client's is under way."""
        return any(one.client == client for one in self.under.values())

    def living(self, role: Role) -> Iterator[tuple[str, Standing]]:
        """Instances of a role that are not lost."""
        for name, one in self.standing.items():
            if one.role is role and not one.lost:
                yield name, one
