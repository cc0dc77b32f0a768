"""What a scenario asks of a live machine at its peak: packets over wires, and computing.

::

    P site ──access──[fab]── tor ══legs══[wan]══ tor ──[fab]──access── MD site
       R = all legs full, three crossings          P to MD in one site: two
       P to RLD: a burst, done within ``TOLERATED`` of a decode step
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.contract.agent import Request
from testbed.contract.demand import Demand
from testbed.contract.link import LinkSpec
from testbed.contract.role import Role
from testbed.plan.roster import ETHERNET_HEADER
from testbed.scenario.value import Scenario

TOLERATED = 0.25
"""Share of a decode step that a burst inside a site may take: RLD starts so much later."""
_NS = 10**9


@dataclass(frozen=True, slots=True)
class Flow:
    """Bit/s at layer 2, emulated, over one class of links."""

    spec: LinkSpec
    bps: float


def demand_of(scenario: Scenario, requests: tuple[Request, ...], slow: float) -> Demand:
    """Of a scenario that has its size already; ``slow`` spreads all of it over more time."""
    shortest = shortest_ns(scenario, requests)
    superframes = frames = 0.0
    frame_bytes = min(spec.mtu for _, spec in scenario.links) + ETHERNET_HEADER
    for flow in _flows(scenario, requests):
        if flow.spec.superframe_bytes > flow.spec.mtu:
            superframes += flow.bps / 8 / flow.spec.superframe_bytes
        else:
            frames += flow.bps / 8 / (flow.spec.mtu + ETHERNET_HEADER)
    return Demand(
        superframes_per_s=superframes / slow,
        frames_per_s=frames / slow,
        frame_bytes=frame_bytes,
        computing=_computing(scenario, requests) / slow,
        shortest_ns=shortest,
    )


def shortest_ns(scenario: Scenario, requests: tuple[Request, ...]) -> int:
    """The shortest time that matters to what is studied, in emulated nanoseconds.

    The delay of a line between sites, MD's step for one sequence, and the largest transfer.
    """
    layout = scenario.layout
    largest = max((request.wire_bytes for request in requests), default=0)
    times = [1.0 * _NS]
    for one, other in _pairs(scenario):
        legs = layout.joining(one, other)
        if legs is not None:
            times.append(scenario.link(legs.link).delay_ns)
        link = legs.link if legs is not None else layout.where(Role.PREFILL)[0].link
        spec = scenario.link(link)
        times.append(2 * spec.delay_ns + largest * 8 * _NS / spec.rate_bps)
    times.append(_step_s(scenario, Role.DECODE) * _NS)
    return round(min(time for time in times if time >= 1))


def _step_s(scenario: Scenario, role: Role) -> float:
    """A decode step of one sequence."""
    hardware = scenario.hardware_of(role)
    return hardware.decode_base_s + hardware.decode_sequence_s


def _pairs(scenario: Scenario) -> set[tuple[str, str]]:
    """Sites of P with sites of MD."""
    layout = scenario.layout
    return {(p.site, d.site) for p in layout.where(Role.PREFILL) for d in layout.where(Role.DECODE)}


def _flows(scenario: Scenario, requests: tuple[Request, ...]) -> Iterator[Flow]:
    layout = scenario.layout
    prefills, decodes = layout.where(Role.PREFILL), layout.where(Role.DECODE)
    senders = {place.site: place for place in prefills}
    receivers = {place.site: place for place in decodes}
    for one, other in sorted(_pairs(scenario)):
        ends = [scenario.link(senders[one].link), scenario.link(receivers[other].link)]
        legs = layout.joining(one, other)
        if legs is not None:
            wan = scenario.link(legs.link)
            total = float(legs.count * wan.rate_bps)
            yield Flow(wan, total)
            yield from (Flow(end, total) for end in ends)
        elif one == other:
            counts = senders[one].count, receivers[other].count
            most = min(n * end.rate_bps for n, end in zip(counts, ends, strict=True))
            yield from (Flow(end, float(most)) for end in ends)
    longest = max((request.input_tokens for request in requests), default=0)
    burst = longest * scenario.shape.bytes_per_token + scenario.shape.fixed_bytes
    for relay in layout.where(Role.RELAY):
        if relay.site in senders:
            end = scenario.link(relay.link)
            bps = float(relay.count * end.rate_bps)
            if step_s := _step_s(scenario, Role.RELAY):
                bps = min(bps, senders[relay.site].count * burst * 8 / (TOLERATED * step_s))
            yield from (Flow(end, bps) for _ in range(2))


def _computing(scenario: Scenario, requests: tuple[Request, ...]) -> float:
    """Cores busy with real passes, as if all had to be done while requests arrive."""
    passes = sum(request.output_tokens for request in requests) + 2 * len(requests)
    span_s = scenario.window.end_ns / _NS
    return passes * scenario.model.wall_per_token.value.seconds / span_s
