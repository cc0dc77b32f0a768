"""The picture of the cluster that the router decides by: book, caches, pools and lines. Pure."""

from __future__ import annotations

from collections import Counter

from testbed.contract.role import Role
from testbed.contract.serving import Serving
from testbed_agents.router.book import Book, Under
from testbed_agents.router.egress import Egress
from testbed_agents.router.view import ClusterView, InstanceView, LegView, PoolView

Hits = dict[Role, dict[str, int]]
"""Per role and instance: blocks of the request's prompt that it is believed to hold."""


class Picture:
    """What is under way, and what P reported of its transfers.

    Args:
        pool_size: connections of each (P, MD) pair.
    """

    def __init__(self, book: Book, serving: Serving, pool_size: int) -> None:
        self._book = book
        self._serving = serving
        self._size = pool_size
        self._transfer_ns: dict[tuple[str, str], int] = {}
        self._egress = Egress()

    def transferred(self, under: Under, now_ns: int, took_ns: int) -> None:
        """P's transfer to MD has ended."""
        self._egress.delivered(self._leg(under), now_ns, took_ns, under.wire_bytes)
        self._transfer_ns[under.route.prefill, under.route.decode or ""] = took_ns
        under.wire_bytes = 0

    def view(self, hits: Hits, tried: frozenset[str], now_ns: int) -> ClusterView:
        """The living; without the MDs that were tried in vain, unless there is no other."""
        prefills = self._of(Role.PREFILL, hits)
        every = self._of(Role.DECODE, hits)
        decodes = tuple([one for one in every if one.name not in tried]) or every
        pools = self._pools(prefills, decodes)
        relays = self._of(Role.RELAY, hits)
        return ClusterView(now_ns, prefills, relays, decodes, pools, self._legs(now_ns))

    def _of(self, role: Role, hits: Hits) -> tuple[InstanceView, ...]:
        return tuple(
            InstanceView(
                name, role, one.site, one.queued_tokens, len(one.active),
                hits.get(role, {}).get(name, 0), one.most, len(one.begun),
            )
            for name, one in self._book.living(role)
        )  # fmt: skip

    def _pools(
        self, prefills: tuple[InstanceView, ...], decodes: tuple[InstanceView, ...]
    ) -> dict[tuple[str, str], PoolView]:
        waiting: Counter[tuple[str, str]] = Counter()
        for under in self._book.under.values():
            if under.prefilled and under.wire_bytes and under.route.decode:
                waiting[under.route.prefill, under.route.decode] += 1
        return {
            (p.name, d.name): PoolView(
                f"{p.site}-{d.site}",
                min(self._size, waiting[p.name, d.name]),
                max(0, waiting[p.name, d.name] - self._size),
                self._size,
                self._transfer_ns.get((p.name, d.name), 0),
            )
            for p in prefills
            for d in decodes
        }

    def _legs(self, now_ns: int) -> dict[str, LegView]:
        flows: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for under in self._book.under.values():
            if under.prefilled and under.wire_bytes and under.route.decode:
                flows[self._leg(under)] += 1
                sizes[self._leg(under)] += under.wire_bytes
        return {
            name: LegView(
                payload, self._egress.used(name, now_ns, payload, sizes[name]), flows[name],
                self._serving.rtt_ns,
            )
            for name, payload in self._serving.leg_payload_bps
        }  # fmt: skip

    def _leg(self, under: Under) -> str:
        """The line between the sites of its P and its MD."""
        ends = (under.route.prefill, under.route.decode or under.route.prefill)
        return "-".join([self._book.standing[name].site for name in ends])
