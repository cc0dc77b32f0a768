"""Measures what the built lab carries: packets over a wire without a rate, for a moment."""

from __future__ import annotations

import time
from collections.abc import Mapping

from testbed.contract.demand import Costs
from testbed.contract.link import LinkSpec
from testbed.contract.network import Link, Network
from testbed.fidelity.frame import ETHERNET, Template, plain, superframe
from testbed.fidelity.probe import Place, Probe
from testbed.lab.tc import Wire
from testbed.lab.tc.path import ways

BURST = 100
"""Packets sent at once; all must arrive before the next burst."""
EACH_NS = 300_000_000
"""How long each kind of packet is sent."""
_PATIENCE_NS = 2_000_000_000
_LEAST_DELAY_NS = 1_000


def measure_costs(network: Network, ns_of: Mapping[str, str], within: bool = False) -> Costs:
    """Seconds a packet, the mean over ``EACH_NS``. Links must be applied anew afterwards.

    The time is that of the slowest part of the way from a socket over the wire to a socket.
    A kind of packet that the plan has no links for counts as free.

    Args:
        within: a wire measures itself, from its rate stage to where it sends on.
    """
    kinds: dict[bool, float] = {True: 0.0, False: 0.0}
    for link in network.links:
        spec = link.forward
        large = spec.superframe_bytes > spec.mtu
        if kinds[large] == 0:
            template = (
                superframe(spec.superframe_bytes, spec.mtu) if large else plain(spec.mtu + ETHERNET)
            )
            kinds[large] = _seconds_a_packet(link, ns_of, template, within)
    return Costs(superframe_s=kinds[True], frame_s=kinds[False])


def _seconds_a_packet(
    link: Link, ns_of: Mapping[str, str], template: Template, within: bool
) -> float:
    free = link.model_copy(
        update={"forward": _unlimited(link.forward), "backward": _unlimited(link.backward)}
    )
    with Wire(ns_of[link.wire]) as wire:
        wire.apply(free)
    if within:
        way = ways(link)[0]
        source, sink = (Place(ns_of[link.wire], device) for device in (way.rate, way.leaves))
    else:
        source = Place(ns_of[link.a.node], link.a.interface)
        sink = Place(ns_of[link.b.node], link.b.interface)
    packets = 0
    with Probe(source, sink, template) as probe:
        began = time.monotonic_ns()
        while (took := time.monotonic_ns() - began) < EACH_NS:
            packets += probe.through(BURST, _PATIENCE_NS)
    return took / 1e9 / max(packets, 1)


def _unlimited(spec: LinkSpec) -> LinkSpec:
    return spec.model_copy(
        update={
            "rate_bps": 0, "delay_ns": _LEAST_DELAY_NS, "jitter": None, "loss": None,
            "slot": None, "duplicate": 0.0, "corrupt": 0.0, "ecn": False,
        }
    )  # fmt: skip
