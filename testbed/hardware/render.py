"""A profile as the lines of ``profiles/hardware.yaml``."""

from __future__ import annotations

import textwrap

from testbed.hardware.shipped import Shipped

DIGITS = 5
"""Significant digits of every time: rounding stays under 1/20,000."""


def yaml_lines(shipped: Shipped) -> tuple[str, ...]:
    """The entry under ``profiles:``, indented by two blanks."""
    one = shipped.hardware
    source = textwrap.wrap(one.source, width=100, break_on_hyphens=False)
    width = (f"    extend_width: {one.extend_width}",) if one.extend_width else ()
    memory = (f"    kv_memory: {one.kv_memory_bytes // 10**6} MB",) if one.kv_memory_bytes else ()
    return (
        f"  {one.name}:",
        f'    description: "{shipped.description}"',
        "    source: >-",
        *(f"      {line}" for line in source),
        f"    prefill_base: {duration(one.prefill_base_s)}",
        f"    prefill_token: {duration(one.prefill_token_s)}",
        f"    prefill_attention: {duration(one.prefill_attention_s * 2**20)}",
        f"    prefill_floor: {duration(one.prefill_floor_s)}",
        f"    decode_base: {duration(one.decode_base_s)}",
        f"    decode_sequence: {duration(one.decode_sequence_s)}",
        f"    decode_context: {duration(one.decode_context_s * 2**20)}",
        f"    decode_extra_token: {duration(one.decode_extra_token_s)}",
        *width,
        f"    copy_base: {duration(one.copy_base_s)}",
        f"    copy_volume: {duration(one.copy_byte_s * 2**30)}",
        *memory,
        f"    max_batch: {one.max_batch}",
    )


def duration(seconds: float) -> str:
    """A time in whole nanoseconds with at most five significant digits, in ms or us."""
    ns = round(float(f"{seconds * 1e9:.{DIGITS - 1}e}"))
    if ns >= 1_000_000:
        return f"{ns / 1e6:.6f}".rstrip("0").rstrip(".") + " ms"
    return f"{ns / 1e3:.3f}".rstrip("0").rstrip(".") + " us"
