"""The pairs that every report shows: what was run, in the author's units."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.contract.link import GilbertElliott, LinkSpec, RandomLoss
from testbed.contract.plan import Offered
from testbed.contract.pool import Fifo, Lifo, Order, Pool
from testbed.contract.record import Record
from testbed.contract.role import Role
from testbed.scenario.serving import ServingChoice
from testbed.scenario.value import Scenario
from testbed.units import Duration, Rate, Size

Pair = tuple[str, str]


def summary(scenario: Scenario, offered: Offered, requests: int) -> tuple[Pair, ...]:
    """Facts of a plan as (key, value), in reading order."""
    file = scenario.file
    shape = scenario.shape
    parameters = ", ".join(f"{name} {value}" for name, value in scenario.parameters)
    pairs: list[Pair] = [
        ("scenario", file.description),
        ("topology", f"{scenario.topology.name} ({parameters})"),
        *((f"link {name}", describe(spec)) for name, spec in scenario.links),
        ("workload", f"{requests} requests, arrivals {file.workload.arrivals.kind}, "
                     f"hits {file.workload.hit.kind}"),
        ("offered load", f"{offered.load:.4f} (raw draw {offered.raw_load:.4f}, "
                         f"sizes x {offered.byte_scale:.4f})"),
        ("window", f"warm-up {file.window.warm_up}, measure {file.window.measure}, "
                   f"drain {file.window.drain}"),
        ("KV", f"{file.shape.kv} {file.shape.precision}: {shape.bytes_per_token} B a token"
               + (f" + {shape.fixed_bytes} B" if shape.fixed_bytes else "")),
        ("hardware", f"{file.shape.hardware}: {scenario.hardware.source}"),
        ("model", f"{file.model.name}, {shape.ratio} emulated prompt tokens per real one, "
                  f"blocks of {shape.block_tokens}"),
        ("pool", f"{_pooled(scenario.pool)}, chunks of {file.pool.chunk}"),
        ("TCP", f"{file.tcp.congestion}, buffers {file.tcp.send_buffer} and "
                f"{file.tcp.receive_buffer}, wake at {file.tcp.low_water}"),
        ("verify", file.verify),
    ]  # fmt: skip
    if file.defects:
        pairs.append(("protections off", ", ".join(file.defects)))
    if file.serving is not None:
        pairs.extend(_served(scenario, file.serving))
    pairs.extend((f"source of {what}", source) for what, source in scenario.sources)
    pairs.extend(("assumption", text) for text in file.assumptions)
    return tuple(pairs)


def _pooled(pool: Pool) -> str:
    """How many connections a pair has, and by which rule, where that is not the default."""
    rule, order = pool.discipline, pool.order
    if pool.size is None:
        words = f"{rule.kind}: connections without a bound, {pool.most} source ports"
    else:
        words = f"{pool.size} connections a pair"
        words = words if rule == Fifo() else f"{rule.kind}: at most {words}"
    if isinstance(rule, Lifo):
        words += f", closed after {Duration(rule.idle_timeout_ns)} idle"
    if pool.stripes > 1:
        words += f", a transfer over up to {pool.stripes}"
    if pool.preempt:
        words += ", lent between chunks"
    return words if order is Order.FIRST_COME else f"{words}, {order.value}"


def _served(scenario: Scenario, serving: ServingChoice) -> Iterator[Pair]:
    """The serving plane, what is asked of it, and what it costs."""
    file, own, chosen = scenario.file, scenario.file.shape.hardware, serving.hardware
    instances, caches, handoff = serving.instances, serving.caches, serving.handoff
    yield "pipeline", _words(serving.pipeline)
    yield (
        "instances",
        f"P {instances.prefill}, RLD {instances.relay}, MD {instances.decode}",
    )
    yield "caches", f"P {caches.prefill}, RLD {caches.relay}, MD {caches.decode}"
    yield "handoff", f"{handoff.mode.value}; RLD keeps {handoff.most} for {handoff.hold} at most"
    yield (
        "hardware by role",
        f"P {chosen.prefill or own}, RLD {chosen.relay or own}, MD {chosen.decode or own}"
        + (f"; P beside an MD {chosen.near_prefill}" if chosen.near_prefill else ""),
    )
    yield (
        "service level",
        f"first token within {file.sla.ttft_p90}, {file.sla.tpot_p90} a token, for 90 %",
    )
    if file.prices is not None:
        cost = file.prices.resolve({role: scenario.count(role) for role in Role})
        parts = ", ".join(f"{part.role} {part.nodes} x {part.node}" for part in cost.parts)
        yield "cost", f"{cost.total:g} ({parts}); 1 is {cost.unit}"


def _words(choice: Record) -> str:
    """The kind and settings of a choice."""
    parts: list[str] = []
    for name in type(choice).model_fields:
        value: object = getattr(choice, name)
        if name == "kind":
            parts.append(str(value))
        elif isinstance(value, Record):
            parts.append(f"{name} ({_words(value)})")
        else:
            parts.append(f"{name} {value}")
    return ", ".join(parts)


def describe(spec: LinkSpec) -> str:
    """One link in a line."""
    parts = [
        str(Rate(spec.rate_bps)),
        f"RTT {Duration(2 * spec.delay_ns)}",
        f"buffer {Size(spec.buffer_bytes)}",
        f"MTU {spec.mtu}",
        "superframes" if spec.superframe_bytes > spec.mtu else "single frames",
    ]
    if isinstance(spec.loss, RandomLoss):
        parts.append(f"loss {spec.loss.share:.3g}")
    elif isinstance(spec.loss, GilbertElliott):
        parts.append(f"bursty loss p {spec.loss.p:.3g}, r {spec.loss.r:.3g}")
    elif spec.loss is not None:
        parts.append("four-state loss")
    if spec.jitter is not None:
        order = "reordering" if spec.jitter.reorder else "in order"
        parts.append(f"jitter {Duration(spec.jitter.spread_ns)} {spec.jitter.distribution} {order}")
    return ", ".join(parts)
