"""Did the lab see the payload cross the links? Otherwise its samples are not all there.

Which of several parallel legs a connection takes is a hash, and a leg may stay empty. What
must cross is a *cut*: all links that leave the sender, all that enter the receiver, and, where
only they join the two, all WAN links. Bytes sampled over a cut include headers and what was
sent again, so they are never fewer than the acknowledged payload. Where a wire's container ended
meanwhile, its last counters went with it, and nothing can be said of cuts through it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.contract.event import Kind
from testbed.contract.network import Link

WAN = "wan"
Cut = tuple[str, frozenset[str]]
"""What it is called, and the nodes on the near side of it."""


class PayloadSampled:
    """Over every cut between sender and receiver, at least the payload was sampled."""

    name = "payload-sampled"
    claim = "The lab's samples account for all acknowledged payload on the links that carried it."

    def examine(self, case: Case) -> Finding:
        """Compare acknowledged bytes with the samples of every cut that they crossed."""
        acked: Counter[tuple[str, str]] = Counter()
        for step in case.history.of(Kind.TRANSFER_ACKED):
            acked[step.node, step.peer] += step.size
        sampled: Counter[tuple[str, str]] = Counter()
        for sample in case.history.samples:
            sampled[sample.link, sample.direction] += sample.size
        links = case.plan.network.links
        fallen = {fall.node for fall in case.history.falls}
        torn = {link.name for link in links if link.wire in fallen}
        broken: list[str] = []
        cuts = [
            (name, near)
            for name, near in sorted(set(_cuts(links, acked)), key=lambda cut: cut[0])
            if not any(link in torn for link, _ in _crossing(links, near))
        ]
        for name, near in cuts:
            payload = sum(size for (a, b), size in acked.items() if a in near and b not in near)
            crossing = list(_crossing(links, near))
            seen = sum(sampled[link, direction] for link, direction in crossing)
            if seen < payload:
                broken.append(
                    f"{name}: {seen:,} bytes sampled on {', '.join(link for link, _ in crossing)}, "
                    f"{payload:,} acknowledged"
                )
        evidence = (
            f"{sum(acked.values()) / 1e9:.3f} GB of payload over {len(cuts)} cut(s), "
            f"{len(case.history.samples):,} samples"
        )
        if torn:
            evidence += f"; not over {', '.join(sorted(torn))}, whose counters ended meanwhile"
        return found(self.name, self.claim, evidence, broken, Status.INVALID)


def _cuts(links: Iterable[Link], pairs: Iterable[tuple[str, str]]) -> Iterator[Cut]:
    every = {end.node for link in links for end in (link.a, link.b)}
    for sender, receiver in pairs:
        yield f"out of {sender}", frozenset({sender})
        yield f"into {receiver}", frozenset(every - {receiver})
        side = _reached(sender, [link for link in links if link.kind != WAN])
        if receiver not in side:
            yield f"over the WAN from {sender}", frozenset(side)


def _reached(start: str, links: Iterable[Link]) -> set[str]:
    beside: dict[str, list[str]] = {}
    for link in links:
        beside.setdefault(link.a.node, []).append(link.b.node)
        beside.setdefault(link.b.node, []).append(link.a.node)
    reached, frontier = {start}, [start]
    while frontier:
        for node in beside.get(frontier.pop(), []):
            if node not in reached:
                reached.add(node)
                frontier.append(node)
    return reached


def _crossing(links: Iterable[Link], near: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Links out of ``near``, each with the direction that leads out."""
    for link in links:
        if (link.a.node in near) != (link.b.node in near):
            yield link.name, "forward" if link.a.node in near else "backward"
