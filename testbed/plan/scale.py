"""A scenario made smaller for a live machine; slow motion is the network's and the clocks' matter.

::

    shape, pool, tcp, caches, device memory    bytes x size
    links                                      rate x size, buffer x size, packets small enough
    times, tokens, requests, the draw          as they are

So a transfer takes as long as before, and buffer / BDP and RTT / service time stay. What shrinks is
the number of packets: where a buffer no longer holds ``LEAST_PACKETS`` superframes, the
network carries frames, and where it does not hold as many of those, frames of 1,500 B.
"""

from __future__ import annotations

from dataclasses import replace

from testbed.contract.agent import Hardware, Shape
from testbed.contract.link import LinkSpec
from testbed.contract.scale import FULL, Scale
from testbed.errors import PlanError
from testbed.scenario.file import ScenarioFile, TcpChoice
from testbed.scenario.guard import GuardChoice
from testbed.scenario.linkcheck import MIN_BUFFER_PACKETS
from testbed.scenario.pool import PoolChoice
from testbed.scenario.realtime import RealTimeChoice
from testbed.scenario.serving import ServingChoice
from testbed.scenario.value import Scenario
from testbed.units import Size

LEAST_PACKETS = 16
"""A buffer of fewer packets drops what a larger one would have queued."""
SMALL_MTU = 1_500
LEAST_CHUNK, LEAST_WINDOW = 4_096, 65_536
"""Bytes: the least chunk of a transfer, and the least socket buffer that TCP works with."""
_RATE_STEP_BPS = 8


def scaled(scenario: Scenario, choice: RealTimeChoice | None) -> tuple[Scenario, Scale]:
    """The scenario at a scale, and that scale.

    The size is rounded so that a token has a whole number of bytes; everything is multiplied by
    what then remains.

    Raises:
        PlanError: at this size something would be smaller than it can be.
    """
    if choice is None:
        return scenario, FULL
    asked = choice.size.fraction
    whole = scenario.shape.bytes_per_token
    size = max(1, round(whole * asked)) / whole if asked < 1 else 1.0
    scale = Scale(size=size, slow=choice.slow)
    if size == 1:
        return scenario, scale
    small = replace(
        scenario,
        file=_file(scenario.file, size),
        shape=_shape(scenario.shape, size),
        links=_links(scenario.links, size),
        hardware=_hardware(scenario.hardware, size),
        by_role=tuple((role, _hardware(one, size)) for role, one in scenario.by_role),
        near_prefill=None
        if scenario.near_prefill is None
        else _hardware(scenario.near_prefill, size),
    )
    _refuse_too_small(scenario, small, size)
    return small, scale


def _shape(shape: Shape, size: float) -> Shape:
    return shape.model_copy(
        update={
            "bytes_per_token": round(shape.bytes_per_token * size),
            "fixed_bytes": round(shape.fixed_bytes * size),
        }
    )


def _hardware(hardware: Hardware, size: float) -> Hardware:
    """Copies take as long, and as many tokens find room."""
    return hardware.model_copy(
        update={
            "copy_byte_s": hardware.copy_byte_s / size,
            "kv_memory_bytes": round(hardware.kv_memory_bytes * size),
        }
    )


def _file(file: ScenarioFile, size: float) -> ScenarioFile:
    changed: dict[str, PoolChoice | TcpChoice | ServingChoice | GuardChoice] = {
        "pool": file.pool.model_copy(update={"chunk": _part(file.pool.chunk, size)}),
        "tcp": file.tcp.model_copy(
            update={
                name: _part(getattr(file.tcp, name), size)
                for name in ("send_buffer", "receive_buffer", "low_water")
            }
        ),
    }
    if file.guard.queue_bytes is not None:
        changed["guard"] = file.guard.model_copy(
            update={"queue_bytes": _part(file.guard.queue_bytes, size)}
        )
    if file.serving is not None:
        changed["serving"] = _serving(file.serving, size)
    return file.model_copy(update=changed)


def _serving(serving: ServingChoice, size: float) -> ServingChoice:
    caches, memory = serving.caches, serving.memory
    return serving.model_copy(
        update={
            "caches": caches.model_copy(
                update={
                    name: _part(getattr(caches, name), size)
                    for name in ("prefill", "decode", "relay")
                }
            ),
            "memory": memory.model_copy(
                update={
                    name: None if whole is None else _part(whole, size)
                    for name, whole in (("relay", memory.relay), ("decode", memory.decode))
                }
            ),
        }
    )


def _part(whole: Size, size: float) -> Size:
    """At least a byte of what there was; nothing stays nothing."""
    return Size(max(1, round(whole.bytes * size)) if whole.bytes else 0)


def _links(
    links: tuple[tuple[str, LinkSpec], ...], size: float
) -> tuple[tuple[str, LinkSpec], ...]:
    """All at one MTU, so that no router has to refuse a packet of its neighbour's."""
    buffers = {name: round(spec.buffer_bytes * size) for name, spec in links}
    small = any(buffers[name] < LEAST_PACKETS * spec.mtu for name, spec in links)
    found: list[tuple[str, LinkSpec]] = []
    for name, spec in links:
        mtu = min(spec.mtu, SMALL_MTU) if small else spec.mtu
        frames = spec.superframe_bytes == spec.mtu
        frames = frames or buffers[name] < LEAST_PACKETS * spec.superframe_bytes
        update: dict[str, int] = {
            "rate_bps": max(1, round(spec.rate_bps * size / _RATE_STEP_BPS)) * _RATE_STEP_BPS,
            "buffer_bytes": buffers[name],
            "mtu": mtu,
            "superframe_bytes": mtu if frames else spec.superframe_bytes,
        }
        found.append((name, spec.model_copy(update=update)))
    return tuple(found)


def _refuse_too_small(whole: Scenario, small: Scenario, size: float) -> None:
    substance = small.shape.block_tokens // small.shape.ratio
    substance *= small.model.kv_per_real_token.value.bytes
    tcp, pool = small.file.tcp, small.file.pool
    parts = [
        ("a block of KV", small.shape.block_tokens * small.shape.bytes_per_token, substance),
        ("pool.chunk", pool.chunk.bytes, LEAST_CHUNK),
        ("tcp.send_buffer", tcp.send_buffer.bytes, LEAST_WINDOW),
        ("tcp.receive_buffer", tcp.receive_buffer.bytes, LEAST_WINDOW),
    ]
    for name, spec in small.links:
        least = MIN_BUFFER_PACKETS * spec.mtu
        parts.append((f"the buffer of links.{name}", spec.buffer_bytes, least))
    needed = max(least / have for _, have, least in parts)
    if needed > 1:
        worst = max(parts, key=lambda part: part[2] / part[1])
        raise PlanError(
            "plan", f"real_time.size of {size:.3%}",
            f"{worst[0]} would be {worst[1]} bytes, and less than {worst[2]} does not work",
            f'use a size of at least {min(1.0, size * needed * 1.01):.2%} and a larger slow: '
            '--set real_time.size="…" --set real_time.slow=…',
        )  # fmt: skip
