"""From a roofline to the linear profile that agents evaluate.

Prefill is compute-bound above a few hundred tokens, where the roofline is exactly
linear in tokens and in pairs of tokens; below, ``prefill_floor_s`` is the time to read
the weights. Decode is memory-bound: the share of experts that a step reads bends, and
the profile has the straight line through batches of 16 and 48.
"""

from __future__ import annotations

from testbed.contract.agent import Hardware
from testbed.hardware.chip import RelativeChip
from testbed.hardware.roofline import Roofline

LOW_BATCH, HIGH_BATCH = 16, 48
"""Where the line of decode meets the roofline."""


def compile_roofline(
    roofline: Roofline, source: str, max_batch: int = 256, extend_width: int = 0
) -> Hardware:
    """The profile of one instance. Raises ValueError when the weights do not fit."""
    peak = roofline.efficiency.prefill_compute
    token_s = roofline.compute_s(1, 0) / peak
    low_s, high_s = (roofline.read_s(batch) for batch in (LOW_BATCH, HIGH_BATCH))
    slope_s = (high_s - low_s) / (HIGH_BATCH - LOW_BATCH)
    return Hardware(
        name=roofline.instance.name,
        source=source,
        prefill_base_s=roofline.overhead_s,
        prefill_token_s=token_s,
        prefill_attention_s=(roofline.compute_s(1, 1) / peak - token_s),
        decode_base_s=roofline.overhead_s + low_s - LOW_BATCH * slope_s,
        decode_sequence_s=slope_s + roofline.kv_s(1, 0),
        decode_context_s=roofline.kv_s(0, 1),
        max_batch=max_batch,
        prefill_floor_s=roofline.read_s(HIGH_BATCH * 8),
        decode_extra_token_s=slope_s,
        extend_width=extend_width,
        copy_base_s=roofline.efficiency.copy_s,
        copy_byte_s=roofline.copy_byte_s,
        kv_memory_bytes=roofline.kv_memory_bytes,
    )


def scale(prefill: Hardware, decode: Hardware, chip: RelativeChip, source: str) -> Hardware:
    """A relative chip in the place of the H100 of two profiles, one for each phase.

    Prefill: all times divided by the share, so throughput is that share at any queue.
    Decode: the base stays and what grows with sequences and context is divided, so a
    step of ``share x b`` sequences takes what b sequences take on the baseline: under
    every limit on TPOT, throughput is exactly that share. Memory and links are not
    published and stay those of the baseline.
    """
    return decode.model_copy(
        update={
            "name": chip.name,
            "source": source,
            "prefill_base_s": prefill.prefill_base_s / chip.prefill,
            "prefill_token_s": prefill.prefill_token_s / chip.prefill,
            "prefill_attention_s": prefill.prefill_attention_s / chip.prefill,
            "prefill_floor_s": prefill.prefill_floor_s / chip.prefill,
            "decode_sequence_s": decode.decode_sequence_s / chip.decode,
            "decode_context_s": decode.decode_context_s / chip.decode,
            "decode_extra_token_s": decode.decode_extra_token_s / chip.decode,
            "max_batch": round(decode.max_batch * chip.decode),
        }
    )
