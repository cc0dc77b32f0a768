"""Time of a pass = overhead + max(operations / speed, bytes / bandwidth).

An instance is ``nodes`` times eight chips that work on one pass together. The overhead
is per layer: launches and waiting, and one more exchange for each further node.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.hardware.chip import Chip
from testbed.hardware.model_cost import ModelCost


@dataclass(frozen=True, slots=True)
class Instance:
    """One P, RLD, MD or D."""

    name: str
    chip: Chip
    nodes: int
    chips_per_node: int = 8

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.chips_per_node < 1:
            raise ValueError(f"{self.name}: an instance has at least one chip")

    @property
    def chips(self) -> int:
        """Chips that share the work."""
        return self.nodes * self.chips_per_node


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What is reached of the peaks (shares from 0 to 1), and what no peak explains."""

    prefill_compute: float
    decode_compute: float
    memory: float
    link: float
    usable_memory: float
    layer_s: float
    """Overhead of one layer within one node."""
    exchange_s: float
    """Added per layer for each node beyond the first."""
    copy_s: float
    """Fixed time of one copy between host and device, one direction, all layers."""

    def __post_init__(self) -> None:
        shares = (
            self.prefill_compute, self.decode_compute, self.memory, self.link, self.usable_memory,
        )  # fmt: skip
        if not all(0 < share <= 1 for share in shares):
            raise ValueError("a share of a peak lies above 0 and at most at 1")


@dataclass(frozen=True, slots=True)
class Roofline:
    """Times of one model on one instance, in seconds."""

    instance: Instance
    model: ModelCost
    efficiency: Efficiency

    @property
    def overhead_s(self) -> float:
        """Overhead of one pass."""
        exchanges = self.efficiency.exchange_s * (self.instance.nodes - 1)
        return self.model.layers * (self.efficiency.layer_s + exchanges)

    def prefill_s(self, uncached: int, context: int) -> float:
        """One pass over ``uncached`` tokens behind ``context`` cached ones."""
        flop_s = self.compute_s(uncached, uncached * (context + uncached / 2))
        compute_s = flop_s / self.efficiency.prefill_compute
        return self.overhead_s + max(compute_s, self.read_s(uncached))

    def decode_s(self, batch: int, context: int, extra: int = 0) -> float:
        """One step of ``batch`` sequences with ``context`` tokens in all.

        ``extra`` tokens are fed on top of one a sequence (extend-decode).
        """
        tokens = batch + extra
        pairs = context * tokens / batch if batch else 0
        compute_s = self.compute_s(tokens, pairs) / self.efficiency.decode_compute
        return self.overhead_s + max(compute_s, self.read_s(tokens) + self.kv_s(batch, context))

    def compute_s(self, tokens: float, pairs: float) -> float:
        """Operations at peak speed: fp8 outside attention, bf16 inside."""
        chip, model = self.instance.chip, self.model
        attention = tokens * model.attention_flop + pairs * model.attention_flop_per_context
        one_chip_s = tokens * model.flop_per_token / chip.fp8_flop_s + attention / chip.bf16_flop_s
        return one_chip_s / self.instance.chips

    def read_s(self, tokens: float) -> float:
        """Reading the weights that ``tokens`` tokens need."""
        return self.model.read_bytes(tokens) / self.bandwidth

    def kv_s(self, batch: float, context: float) -> float:
        """Reading the KV that one step needs."""
        model = self.model
        read = batch * model.kv_read_bytes + context * model.kv_read_bytes_per_context
        return read / self.bandwidth

    def copy_s(self, size: int) -> float:
        """One copy of ``size`` bytes of KV between host and device.

        The model has one KV head, so each chip holds all of it and copies it over its
        own link at the same time.
        """
        return self.efficiency.copy_s + size * self.copy_byte_s

    @property
    def copy_byte_s(self) -> float:
        """Seconds that a copied byte takes."""
        return 1 / (self.instance.chip.link_bytes_s * self.efficiency.link)

    @property
    def bandwidth(self) -> float:
        """Bytes per second that the instance reads from its memory."""
        return self.instance.chip.memory_bytes_s * self.instance.chips * self.efficiency.memory

    @property
    def kv_memory_bytes(self) -> int:
        """Memory left for KV. Raises ValueError when the weights do not fit."""
        memory = self.instance.chip.memory_bytes * self.instance.chips
        left = memory * self.efficiency.usable_memory - self.model.weight_bytes
        if left <= 0:
            raise ValueError(f"{self.model.name} does not fit into {self.instance.name}")
        return int(left)
