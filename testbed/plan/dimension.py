"""Numbers without a unit: what stays of a scenario at another scale, and what does not."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.contract.agent import Request
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.contract.scale import Scale
from testbed.plan.roster import ETHERNET_HEADER, payload_bps
from testbed.scenario.value import Scenario

SCALE, NUMBERS = "scale", "numbers of "
"""How the keys of the pairs begin."""
_NS = 10**9
_RTO_MS = 200


def dimensions(
    scenario: Scenario, requests: tuple[Request, ...], scale: Scale
) -> Iterator[tuple[str, str]]:
    """The scale and its numbers as pairs for people; ``scenario`` has its size already."""
    token = scenario.shape.bytes_per_token
    yield (
        SCALE,
        f"size {scale.size:.4g} ({token} B a token), slow {scale.slow:g}: all sizes and rates x "
        f"{scale.size:.4g}, all times x {scale.slow:g} on the lab's clock; TCP's least time-out of "
        f"{_RTO_MS} ms counts as {_RTO_MS / scale.slow:.3g} ms",
    )
    sizes = sorted(request.wire_bytes for request in requests if request.wire_bytes) or [0]
    median = sizes[len(sizes) // 2]
    for name, spec in scenario.links:
        rtt_ns = 2 * spec.delay_ns
        product = spec.rate_bps * rtt_ns / (8 * _NS)
        frame = spec.mtu + ETHERNET_HEADER
        words = (
            f"BDP {product / frame:.3g} packets of {frame} B, "
            f"buffer / BDP {spec.buffer_bytes / product:.3g}"
        )
        if median:
            service_ns = median * 8 * _NS / payload_bps(spec, spec.mtu)
            words += f", RTT / service time {rtt_ns / service_ns:.3g} (median transfer)"
        yield f"{NUMBERS}{name}", words
    lines = [scenario.link(legs.link) for legs in scenario.layout.legs]
    steps = list(_steps(scenario, requests, 2 * lines[0].delay_ns)) if lines else []
    if steps:
        yield f"{NUMBERS}steps", ", ".join(steps)


def _steps(scenario: Scenario, requests: tuple[Request, ...], rtt_ns: int) -> Iterator[str]:
    prefill, decode = scenario.hardware_of(Role.PREFILL), scenario.hardware_of(Role.DECODE)
    tokens = sorted(request.input_tokens - request.hit_tokens for request in requests)
    uncached = tokens[len(tokens) // 2]
    passes = {
        "P's pass (median prompt)": prefill.prefill_base_s
        + uncached * prefill.prefill_token_s
        + uncached * uncached / 2 * prefill.prefill_attention_s,
        "MD's step (one sequence)": decode.decode_base_s + decode.decode_sequence_s,
    }
    for what, seconds in passes.items():
        if seconds > 0:
            yield f"RTT / {what} {rtt_ns / (seconds * _NS):.3g}"


def scale_words(plan: Plan) -> tuple[str, ...]:
    """The scale and its numbers, a line each; none where a plan is full size and speed."""
    return tuple(
        f"{key}: {value}" for key, value in plan.summary if key == SCALE or key.startswith(NUMBERS)
    )
