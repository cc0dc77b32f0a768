"""Counters of links from one qdisc dump of their namespace: cheap enough to sample often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.contract.network import Link
from testbed.lab.tc.dump import Device, Entry, Reader, Stats
from testbed.lab.tc.path import Way, ways
from testbed.lab.tc.request import CLSACT, ROOT

_NONE = Stats(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class DirectionCounters:
    """One direction since it was applied.

    ``bytes`` and ``packets`` passed the bottleneck (the rate stage, or the delay stage
    of a link without a rate); ``drops`` overflowed the buffer, ``lost`` were taken by
    the delay stage on purpose; ``backlog_bytes`` waits in the rate stage now,
    ``flight_bytes`` is under way in the delay stage. In ``packets`` a superframe counts as
    all its frames, in ``drops`` and ``lost`` once.
    """

    bytes: int
    packets: int
    drops: int
    lost: int
    backlog_bytes: int
    flight_bytes: int


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """Both directions of a link."""

    forward: DirectionCounters
    backward: DirectionCounters


def link_counters(path: str, link: Link) -> LinkCounters:
    """Counters of one link. To sample many links often, keep a ``Wire`` open instead."""
    with Reader(path) as reader:
        return count((link,), reader.devices(), reader.qdiscs())[link.name]


def count(
    links: Sequence[Link], devices: dict[str, Device], qdiscs: Iterable[Entry]
) -> dict[str, LinkCounters]:
    """Sort one dump into links; one that lacks a device (its wire is ending) is left out."""
    stats = {(entry.index, entry.parent): entry.stats for entry in qdiscs}

    def at(device: str, parent: int) -> Stats:
        return stats.get((devices[device].index, parent), _NONE)

    def direction(way: Way) -> DirectionCounters:
        rate, delay = at(way.rate, ROOT), at(way.leaves, ROOT)
        policed = at(way.rate, CLSACT)
        shaped = rate if way.spec.rate_bps else delay
        return DirectionCounters(
            bytes=shaped.bytes,
            packets=shaped.packets,
            drops=rate.drops + policed.drops,
            lost=delay.drops,
            backlog_bytes=rate.backlog_bytes,
            flight_bytes=delay.backlog_bytes,
        )

    found = {}
    for link in links:
        if not {link.a.wire_device, link.b.wire_device, *link.inner} <= devices.keys():
            continue
        forward, backward = ways(link)
        found[link.name] = LinkCounters(direction(forward), direction(backward))
    return found
