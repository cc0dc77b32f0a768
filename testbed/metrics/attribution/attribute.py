"""Every delay of a run gets its account; the worst ones are written out, all are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.attribution.cause import Cause, Wait, Waited
from testbed.metrics.attribution.chain import Account
from testbed.metrics.attribution.explain import Explainer
from testbed.metrics.attribution.late import (
    Late,
    Tokens,
    first_tokens,
    slow_transfers,
    stalls,
)
from testbed.metrics.attribution.past import Past
from testbed.metrics.attribution.record import Causes, Delay, Roots
from testbed.metrics.attribution.waits import clipped, in_stream, on_the_way
from testbed.metrics.attribution.ways import Ways
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS
from testbed.metrics.run import Flags, Run

WRITTEN_MAX = 20
"""Delays of each sort that are written out, the longest first."""
EXAMINED_MAX = 1_000
"""Delays of each sort that are looked into, the longest first."""
STEPS = 2
"""Usual gaps between tokens that a step may take where others had tokens meanwhile."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """What ``metrics.json`` says of delays and their causes."""

    stalls: tuple[Delay, ...]
    first_tokens: tuple[Delay, ...]
    transfers: tuple[Delay, ...]
    causes: Causes


def attribute(run: Run, events: Events, inside: Flags, threshold_s: float) -> Attribution:
    """Explain the stalls beyond ``threshold_s``, late first tokens and slow transfers of the
    window's requests. A pure function of the record."""
    past, ways = Past(run, events), Ways(run.plan)
    explainer = Explainer(past, ways, run.plan.scale.slow)
    tokens = Tokens(run, events, inside)
    search = _Search(run, events, past, explainer, tokens)
    kinds = (
        stalls(tokens, threshold_s),
        first_tokens(events, tokens),
        slow_transfers(past, explainer.carriage, inside),
    )
    found = [search.accounts(kind) for kind in kinds]
    roots = [_roots(len(kind), own) for kind, own in zip(kinds, found, strict=True)]
    lists = [
        tuple(account.record(explainer.carriage) for account in own[:WRITTEN_MAX]) for own in found
    ]
    causes = Causes(stalls=roots[0], first_tokens=roots[1], transfers=roots[2])
    return Attribution(lists[0], lists[1], lists[2], causes)


class _Search:
    def __init__(
        self, run: Run, events: Events, past: Past, explainer: Explainer, tokens: Tokens
    ) -> None:
        self._past = past
        self._explainer = explainer
        self._usual_ns = tokens.usual_ns
        self._roles = {agent.node: agent.role for agent in run.plan.agents}
        routed = events[Kind.REQUEST_ROUTED]
        relays = {agent.node for agent in run.agents(Role.RELAY)}
        token = events[Kind.TOKEN]
        self._relay = {
            req: events.names[code]
            for req, code in zip(token.req.tolist(), token.texts["source"].tolist(), strict=True)
            if events.names[code] in relays
        } if routed.t.size else {}  # fmt: skip

    def accounts(self, lates: list[Late]) -> list[Account]:
        """Of the longest ones, the longest first."""
        longest = sorted(lates, key=lambda one: (-one.length, one.begin, one.req, one.source))
        return [self._account(late) for late in longest[:EXAMINED_MAX]]

    def _account(self, late: Late) -> Account:
        waits = self._waits(late)
        if late.sent is not None:
            pieces = self._explainer.carriage.pieces(late.sent, late.begin, late.end)
            return Account(late, [(waits[0], pieces)])
        relay = self._relay.get(late.req, "")
        beside = relay if relay != late.source else ""
        step_ns = STEPS * self._usual_ns if late.alone else 0
        return Account(
            late,
            [
                (
                    wait,
                    self._explainer.pieces(
                        late.req, wait, beside if wait.kind is Wait.HANDOFF else "", step_ns
                    ),
                )
                for wait in waits
            ],
        )

    def _waits(self, late: Late) -> list[Waited]:
        if late.sent is not None:
            return [Waited(Wait.TRANSFER, late.begin, late.end, *late.sent.pair)]
        if late.what == "stall" and late.before == late.source:
            return in_stream(
                self._past, late.req, late.source, late.client, late.begin, late.end, late.together
            )
        role = self._roles.get(late.source)
        way = on_the_way(self._past, late.req, late.source, role, late.client, late.end)
        return clipped(way, late.begin, late.end)


def _roots(count: int, accounts: Iterable[Account]) -> Roots:
    """Counts by what is at the root."""
    own = list(accounts)
    roots = [account.root() for account in own]
    causes = Counter(root.cause.value for root in roots)
    faults = Counter(root.force.fault.name for root in roots if root.force is not None)
    subjects = Counter(
        root.subject for root in roots if root.subject and root.cause is not Cause.UNEXPLAINED
    )
    return Roots(
        count=count,
        examined=len(own),
        total_s=sum(account.late.length for account in own) / NS,
        unexplained_s=sum(account.unexplained for account in own) / NS,
        by_cause=dict(sorted(causes.items())),
        by_fault=dict(sorted(faults.items())),
        by_subject=dict(sorted(subjects.items())),
    )
