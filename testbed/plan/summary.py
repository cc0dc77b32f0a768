"""The pairs that every report shows: what was run, in the author's units."""

from __future__ import annotations

from testbed.contract.link import GilbertElliott, LinkSpec, RandomLoss
from testbed.contract.plan import Offered
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
        ("pool", f"{file.pool.size} connections a pair, chunks of {file.pool.chunk}"),
        ("TCP", f"{file.tcp.congestion}, buffers {file.tcp.send_buffer} and "
                f"{file.tcp.receive_buffer}, wake at {file.tcp.low_water}"),
        ("verify", file.verify),
    ]  # fmt: skip
    pairs.extend((f"source of {what}", source) for what, source in scenario.sources)
    pairs.extend(("assumption", text) for text in file.assumptions)
    return tuple(pairs)


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
