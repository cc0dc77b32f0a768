"""Which of several instances gets a request. Pure functions of request and picture.

Ties fall to the instance whose place in the order of names is next after the request's
id: deterministic, and idle instances take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, assert_never

from testbed.contract.role import Role
from testbed.contract.router import (
    InstanceRule,
    LeastLoaded,
    LongestPrefix,
    RandomInstance,
    SessionSticky,
)
from testbed.errors import AgentError
from testbed_agents.router.view import InstanceView, RequestFacts


@dataclass(frozen=True, slots=True)
class InstanceChoice:
    """An instance, and why it was taken: a word that a report can count."""

    instance: InstanceView
    reason: str


class InstancePolicy(Protocol):
    """A rule of choice."""

    def choose(self, request: RequestFacts, among: Sequence[InstanceView]) -> InstanceChoice:
        """One of ``among``.

        Raises:
            AgentError: there is none.
        """
        ...


def admitting(request: RequestFacts, among: Sequence[InstanceView]) -> list[InstanceView]:
    """Candidates by name without the full ones; all of them where all are full.

    Raises:
        AgentError: there is none.
    """
    if not among:
        raise AgentError("route a request", str(request.req), "no instance to choose from")
    ordered = sorted(among, key=lambda one: one.name)
    return [one for one in ordered if not one.full] or ordered


def least(request: RequestFacts, ordered: Sequence[InstanceView]) -> InstanceView:
    """The least loaded; among equals, the one whose turn it is."""
    count, turn = len(ordered), request.req
    return min(enumerate(ordered), key=lambda item: (item[1].load, (item[0] - turn) % count))[1]


def draw(*parts: int | str) -> int:
    """A 64-bit number that is a pure function of ``parts``."""
    text = "/".join(map(str, parts)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest())


@dataclass(frozen=True, slots=True)
class RandomPolicy:
    """See ``RandomInstance``."""

    rule: RandomInstance

    def choose(self, request: RequestFacts, among: Sequence[InstanceView]) -> InstanceChoice:
        """A drawn one."""
        ordered = admitting(request, among)
        role = ordered[0].role
        return InstanceChoice(
            ordered[draw(self.rule.seed, role, request.req) % len(ordered)], "random"
        )


@dataclass(frozen=True, slots=True)
class LeastLoadedPolicy:
    """See ``LeastLoaded``."""

    def choose(self, request: RequestFacts, among: Sequence[InstanceView]) -> InstanceChoice:
        """The least loaded one."""
        return InstanceChoice(least(request, admitting(request, among)), "least-loaded")


@dataclass(frozen=True, slots=True)
class SessionStickyPolicy:
    """See ``SessionSticky``.

    By highest random weight: when an instance leaves, only its own sessions move. A full
    instance is skipped, so a session may stray while its home is full.
    """

    rule: SessionSticky

    def choose(self, request: RequestFacts, among: Sequence[InstanceView]) -> InstanceChoice:
        """The session's home."""
        ordered = admitting(request, among)
        session = request.session
        if session is None:
            return InstanceChoice(least(request, ordered), "no-session")
        seed = self.rule.seed
        home = max(ordered, key=lambda one: draw(seed, session, one.name))
        return InstanceChoice(home, "session")


@dataclass(frozen=True, slots=True)
class LongestPrefixPolicy:
    """See ``LongestPrefix``. The bound on load follows consistent hashing with bounded
    loads (Mirrokni, Thorup, Zadimoghaddam, 2018): at least one instance is always below."""

    rule: LongestPrefix

    def choose(self, request: RequestFacts, among: Sequence[InstanceView]) -> InstanceChoice:
        """The longest prefix that is not overloaded."""
        ordered = admitting(request, among)
        rule = self.rule
        prefill = ordered[0].role is Role.PREFILL
        slack = rule.slack_tokens if prefill else rule.slack_sequences
        cap = rule.load_cap * sum([one.load for one in ordered]) / len(ordered) + slack
        longest = max([one.hit_blocks for one in ordered])
        # The mean is rounded, so the least loaded is let in whatever the rounding says.
        floor = min([one.load for one in ordered])
        eligible = [one for one in ordered if one.load <= cap or one.load == floor]
        hit = max([one.hit_blocks for one in eligible])
        taken = least(request, [one for one in eligible if one.hit_blocks == hit])
        if hit < longest:
            return InstanceChoice(taken, "load-cap")
        return InstanceChoice(taken, "prefix" if hit else "no-prefix")


def instance_policy(rule: InstanceRule) -> InstancePolicy:
    """The policy that a configuration names."""
    match rule:
        case RandomInstance():
            return RandomPolicy(rule)
        case LeastLoaded():
            return LeastLoadedPolicy()
        case SessionSticky():
            return SessionStickyPolicy(rule)
        case LongestPrefix():
            return LongestPrefixPolicy(rule)
    assert_never(rule)
