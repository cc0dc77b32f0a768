"""What a run will take: wall time, memory, disk. Estimates, stated before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.agent import Request
from testbed.contract.link import LinkSpec
from testbed.contract.network import Network
from testbed.contract.plan import Estimate
from testbed.errors import HostError
from testbed.plan.containers import engine_memory, engine_wall_s
from testbed.plan.hostfacts import HostFacts
from testbed.scenario.value import Scenario
from testbed.units import Duration, Rate

MIB = 2**20
BITS_PER_WALL_SECOND = 8e9
"""Measured: 8 to 10 Gbit of the unscaled pool study per wall second and core."""
FRAME_SLOWDOWN = 3.0
"""One packet per frame instead of superframes: more packets for the same bytes."""
START_WALL_S = 8.0
KERNEL_BYTES = 160 * MIB
ORCHESTRATOR_BYTES = 300 * MIB
EVENT_BYTES = 160
EVENTS_PER_REQUEST = 26
SAMPLES_PER_SECOND = 100
REPORT_BYTES = 24 * MIB
GUEST_MARGIN = 1.5
SMALLEST_GUEST = 1024 * MIB
GUEST_STEP = 256 * MIB


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One thing that takes memory in the guest, and how to make it smaller."""

    bytes: int
    what: str
    remedy: str


def estimate(
    scenario: Scenario,
    network: Network,
    requests: tuple[Request, ...],
    agents: int,
    virtual: bool,
    before_barrier_s: float,
    lab: str = "mininet",
    slow: float = 1.0,
) -> Estimate:
    """What the run will take on one core of this machine; in slow motion all but computing takes
    ``slow`` times longer under a real clock."""
    payload = sum(request.wire_bytes for request in requests)
    tokens = sum(request.output_tokens for request in requests)
    window_s = scenario.window.deadline_ns / 1e9 * slow
    memory = sum(part.bytes for part in memory_parts(scenario, network, agents, len(requests), lab))
    wall_s = _wall(scenario, payload, tokens, requests, window_s, virtual)
    if lab == "compose":
        wall_s += engine_wall_s(network)
    events = len(requests) * EVENTS_PER_REQUEST + tokens + _samples(network, window_s / slow)
    return Estimate(
        wall_s=round(wall_s, 1),
        guest_memory_bytes=guest_memory(memory),
        host_memory_bytes=memory + ORCHESTRATOR_BYTES,
        disk_bytes=events * EVENT_BYTES + REPORT_BYTES,
        payload_bytes=payload,
        virtual_s=before_barrier_s + window_s,
    )


def guest_memory(needed: int) -> int:
    """``mem=`` of the guest: a margin over what is needed, in whole steps."""
    wanted = max(SMALLEST_GUEST, int(needed * GUEST_MARGIN))
    return -(-wanted // GUEST_STEP) * GUEST_STEP


def refuse_what_will_not_fit(
    subject: str, wanted: Estimate, host: HostFacts, largest: MemoryPart
) -> None:
    """Refuse a run that this machine cannot hold; ``largest`` is what to cut first.

    Raises:
        HostError: naming what is short and by how much.
    """
    for what, needed, free, remedy in (
        (
            f"memory (most of it, {largest.bytes / MIB:.0f} MiB, for {largest.what})",
            wanted.host_memory_bytes,
            host.memory_free_bytes,
            largest.remedy,
        ),
        (
            "disk space",
            wanted.disk_bytes,
            host.disk_free_bytes,
            "free some, choose another --out, or shorten the window",
        ),
    ):
        if needed > free:
            raise HostError(
                "plan",
                subject,
                f"needs about {needed / MIB:.0f} MiB of {what}, {free / MIB:.0f} MiB are free",
                remedy,
            )


def _wall(
    scenario: Scenario,
    payload: int,
    tokens: int,
    requests: tuple[Request, ...],
    window_s: float,
    virtual: bool,
) -> float:
    start = START_WALL_S + scenario.model.wall_load.value.seconds
    if not virtual:
        return start + window_s
    framed = any(spec.superframe_bytes == spec.mtu for _, spec in scenario.links)
    traffic = payload * 8 / BITS_PER_WALL_SECOND * (FRAME_SLOWDOWN if framed else 1.0)
    passes = tokens + 2 * len(requests)
    return start + traffic + passes * scenario.model.wall_per_token.value.seconds


def memory_parts(
    scenario: Scenario, network: Network, agents: int, requests: int, lab: str = "mininet"
) -> tuple[MemoryPart, ...]:
    """What the guest holds, largest first: model, agents, KV of open requests, packets."""
    model = scenario.model
    real = scenario.workload.longest_input // scenario.shape.ratio
    real += scenario.workload.longest_output
    kv = real * model.kv_per_real_token.value.bytes
    pool = scenario.pool
    open_ = min(pool.most, requests) if pool.size is None else pool.size
    parts = [
        MemoryPart(
            KERNEL_BYTES + model.memory.value.bytes,
            f"the guest's kernel and the model {scenario.file.model.name}",
            "end other programs, or take a smaller model",
        ),
        MemoryPart(
            agents * (model.agent_memory.value.bytes + kv),
            f"{agents} agents",
            "end other programs, or lower the topology's parameters",
        ),
        MemoryPart(
            open_ * kv,
            f"KV of {open_} open requests",
            "end other programs, or lower pool.size or the lengths of input and output",
        ),
        *(
            _in_flight(kind, spec, sum(link.kind == kind for link in network.links))
            for kind, spec in scenario.links
        ),
    ]
    if lab == "compose":
        remedy = "end other programs, or lower the topology's parameters"
        words = f"an Engine with {len(network.nodes)} containers"
        parts.append(MemoryPart(engine_memory(network), words, remedy))
    return tuple(sorted(parts, key=lambda part: -part.bytes))


def _in_flight(kind: str, spec: LinkSpec, links: int) -> MemoryPart:
    """Packets in buffers and on the way, of all links of one class."""
    queued, flying = min(spec.buffer_bytes, 128 * MIB), spec.rate_bps * spec.delay_ns // (8 * 10**9)
    rate, delay = Rate(spec.rate_bps), Duration(spec.delay_ns)
    return MemoryPart(
        links * (queued + flying),
        f"packets in flight on {links} links of class {kind}: {rate} x {delay} each way, and their "
        "buffers",
        f"lower rate, rtt or buffer of links.{kind}, or the topology's parameters",
    )


def _samples(network: Network, window_s: float) -> int:
    return int(window_s * SAMPLES_PER_SECOND) * 2 * len(network.links)
