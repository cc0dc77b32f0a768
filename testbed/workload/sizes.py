"""From hit rates to cache blocks and bytes on the wire, and the rescaling to a wanted load.

    bytes = fixed_bytes + bytes_per_token * (input - hit)

A hit counts whole blocks only, as in every block cache. If the scenario wants a
given load, the bytes of *all* requests are multiplied by one factor, so that the
arrivals of the measuring window together offer exactly that load: two distributions
are then compared at one load and not at the luck of two draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.contract.agent import Shape
from testbed.errors import PlanError

Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Per request: cached tokens, uncached blocks, bytes on the wire."""

    hit_tokens: Column
    blocks: Column
    wire_bytes: Column


def raw_sizes(input_tokens: Column, hit_share: NDArray[np.float64], shape: Shape) -> Sizes:
    """Sizes as drawn; ``input_tokens`` are whole blocks, hits are rounded down to blocks."""
    total = input_tokens // shape.block_tokens
    # The small surplus keeps a share that means a whole number of blocks from losing one
    # to binary rounding (100 * 0.29 is 28.999…).
    hit = np.minimum(total, np.floor(total * hit_share + 1e-9).astype(np.int64))
    blocks = total - hit
    wire = shape.fixed_bytes + shape.bytes_per_token * shape.block_tokens * blocks
    return Sizes(hit_tokens=hit * shape.block_tokens, blocks=blocks, wire_bytes=wire)


def byte_scale(window_bytes: int, wanted_load: float, capacity_bytes: float) -> float:
    """The factor that makes ``window_bytes`` equal to ``wanted_load`` of ``capacity_bytes``.

    Raises:
        PlanError: nothing was offered in the window, or the wanted load is zero.
    """
    if window_bytes == 0:
        raise PlanError(
            "rescale sizes",
            f"offered load {wanted_load:.2%}",
            "the draw offers no byte in the measuring window",
            "lengthen the window, raise the rate or lower the hit rate",
        )
    if wanted_load <= 0:
        raise PlanError("rescale sizes", "offered load 0 %", "is not above 0", "leave it out")
    return wanted_load * capacity_bytes / window_bytes


def rescaled(sizes: Sizes, scale: float) -> Sizes:
    """The same requests with every byte count times ``scale``, to the nearest byte."""
    wire = np.rint(sizes.wire_bytes * scale).astype(np.int64)
    return Sizes(hit_tokens=sizes.hit_tokens, blocks=sizes.blocks, wire_bytes=wire)
