"""How long a piece of work takes on the emulated hardware: the profile's formulas. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.contract.agent import Hardware

_NS = 1_000_000_000


def prefill_ns(hardware: Hardware, uncached: int, context: int) -> int:
    """Time to prefill ``uncached`` tokens behind ``context`` cached ones, in nanoseconds."""
    return prefill_pass_ns(hardware, ((uncached, context),))


def prefill_pass_ns(hardware: Hardware, chunks: Iterable[tuple[int, int]]) -> int:
    """Time of one pass over chunks of several prompts, each (tokens, context before), in ns.

    The base is paid once a pass, so cutting a prompt into n chunks costs n - 1 more.
    """
    seconds = hardware.prefill_base_s
    for tokens, context in chunks:
        seconds = (
            seconds
            + tokens * hardware.prefill_token_s
            + tokens * (context + tokens / 2) * hardware.prefill_attention_s
        )
    return round(max(seconds, hardware.prefill_base_s + hardware.prefill_floor_s) * _NS)


def decode_ns(hardware: Hardware, batch: int, context: int, extra: int = 0) -> int:
    """Time of one decode step of ``batch`` sequences with ``context`` tokens in all, in ns.

    ``extra`` counts the tokens fed beyond one a sequence (extend-decode).
    """
    seconds = (
        hardware.decode_base_s
        + batch * hardware.decode_sequence_s
        + context * hardware.decode_context_s
        + extra * hardware.decode_extra_token_s
    )
    return round(seconds * _NS)


def copy_ns(hardware: Hardware, size: int) -> int:
    """Time to copy ``size`` bytes of KV between host and device, one way, in nanoseconds."""
    return round((hardware.copy_base_s + size * hardware.copy_byte_s) * _NS)
