"""How long a piece of work takes on the emulated hardware: the profile's formulas. Pure."""

from __future__ import annotations

from testbed.contract.agent import Hardware

_NS = 1_000_000_000


def prefill_ns(hardware: Hardware, uncached: int, context: int) -> int:
    """Time to prefill ``uncached`` tokens behind ``context`` cached ones, in nanoseconds."""
    seconds = (
        hardware.prefill_base_s
        + uncached * hardware.prefill_token_s
        + uncached * (context + uncached / 2) * hardware.prefill_attention_s
    )
    return round(seconds * _NS)


def decode_ns(hardware: Hardware, batch: int, context: int) -> int:
    """Time of one decode step of ``batch`` sequences with ``context`` tokens in all, in ns."""
    seconds = (
        hardware.decode_base_s
        + batch * hardware.decode_sequence_s
        + context * hardware.decode_context_s
    )
    return round(seconds * _NS)
