"""Accelerators: what the vendor states, and the chips that are known only relative to one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chip:
    """One accelerator. Peaks are dense (no structured sparsity), per second.

    ``link_bytes_s`` is one direction of the link between host and device.
    """

    name: str
    fp8_flop_s: float
    bf16_flop_s: float
    memory_bytes_s: float
    memory_bytes: int
    link_bytes_s: float
    source: str


H100_SXM = Chip(
    name="h100-sxm",
    fp8_flop_s=1_979e12,
    bf16_flop_s=989.5e12,
    memory_bytes_s=3.35e12,
    memory_bytes=80_000_000_000,
    link_bytes_s=64e9,
    source=(
        "NVIDIA H100 Tensor Core GPU datasheet, SXM column: FP8 3,958 and BF16 1,979 TFLOPS with "
        "sparsity (half of that dense), 80 GB HBM3 at 3.35 TB/s, PCIe Gen5 128 GB/s (both ways)"
    ),
)

H200_SXM = Chip(
    name="h200-sxm",
    fp8_flop_s=1_979e12,
    bf16_flop_s=989.5e12,
    memory_bytes_s=4.8e12,
    memory_bytes=141_000_000_000,
    link_bytes_s=64e9,
    source=(
        "NVIDIA H200 Tensor Core GPU datasheet, SXM column: FP8 3,958 and BF16 1,979 TFLOPS with "
        "sparsity (half of that dense), 141 GB HBM3e at 4.8 TB/s, PCIe Gen5 128 GB/s (both ways)"
    ),
)

CHIPS = {chip.name: chip for chip in (H100_SXM, H200_SXM)}


@dataclass(frozen=True, slots=True)
class RelativeChip:
    """A chip of the paper's Table 1: throughput as a share of the same number of H100.

    The shares hold for the model that the paper ran on it; that they hold for another
    model is an assumption.
    """

    name: str
    prefill: float
    decode: float
    model: str
    per: str
    source: str

    def __post_init__(self) -> None:
        if self.prefill <= 0 or self.decode <= 0:
            raise ValueError(f"{self.name}: a share of throughput must be above zero")


CHIP_A = RelativeChip(
    "chip-a", 0.567, 0.387, "glm-5", "system", "PDD paper, text on Table 1, vendor A"
)
CHIP_C = RelativeChip(
    "chip-c", 0.417, 0.564, "glm-4.7", "system", "PDD paper, text on Table 1, vendor C"
)
CHIP_E = RelativeChip(
    "chip-e", 0.81, 2.10, "glm-5", "device", "PDD paper, text on Table 1, vendor E"
)

RELATIVE_CHIPS = {chip.name: chip for chip in (CHIP_A, CHIP_C, CHIP_E)}
