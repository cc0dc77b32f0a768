"""The profiles of the paper's deployment, compiled; ``profiles/hardware.yaml`` holds them."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.agent import Hardware
from testbed.hardware.calibration import (
    EXTEND_WIDTH,
    H100_D,
    H100_P,
    H100_RLD,
    H200_MD,
    calibrated,
    roofline,
)
from testbed.hardware.chip import RELATIVE_CHIPS
from testbed.hardware.compile import compile_roofline, scale
from testbed.hardware.roofline import Instance

MAX_BATCH = 64
"""Chosen: a step of D crosses the 50 ms limit on TPOT at 28, one of MD at 62."""

_MODEL = "DeepSeek-V4-Pro in fp8, roofline of vendor peaks"


@dataclass(frozen=True, slots=True)
class Shipped:
    """One profile and what it stands for."""

    description: str
    hardware: Hardware


_INSTANCES: tuple[tuple[Instance, str, str], ...] = (
    (
        H100_P,
        "One prefill instance (P) of the paper: 4 nodes of 8 H100 SXM",
        "prefill reaches 1.77 % of peak: fitted to the 3.9 s median TTFT of Table 4 at 11.5 "
        "requests/s over 10 P that share one queue",
    ),
    (
        H100_RLD,
        "The relay decode instance (RLD) of the paper: 3 nodes of 8 H100 SXM",
        "as h100-d, which has the same nodes",
    ),
    (
        H100_D,
        "One decode instance (D) of the paper's single data centre: 3 nodes of 8 H100 SXM",
        "overhead a step solved so that 9.0 requests/s (Table 8) over 16 D take 50 ms a step",
    ),
    (
        H200_MD,
        "One main decode instance (MD) of the paper: 2 nodes of 8 H200 SXM",
        "overhead a step solved so that 100 tokens are caught up in 7 steps and 305.2 ms "
        "(Table 5) at 11.5 requests/s (Table 8) over 16 MD",
    ),
)


def shipped() -> tuple[Shipped, ...]:
    """All profiles of this room, the relative chips last."""
    efficiency = calibrated()
    made: dict[str, Shipped] = {}
    for instance, description, fitted in _INSTANCES:
        source = (
            f"{_MODEL} ({instance.chip.source}); {fitted}; copies 2 x 12.25 ms (Table 5); "
            "60 % of memory bandwidth, batch limit and width of extend-decode chosen; "
            "see docs/hardware.md"
        )
        hardware = compile_roofline(roofline(instance, efficiency), source, MAX_BATCH, EXTEND_WIDTH)
        made[instance.name] = Shipped(description, hardware)
    for chip in RELATIVE_CHIPS.values():
        source = (
            f"{chip.source}: {chip.prefill:.1%} of H100 prefill and {chip.decode:.1%} of decode "
            f"throughput, by {chip.per}, with {chip.model}; assumed to hold for DeepSeek-V4-Pro. "
            "h100-p's prefill times divided by the share, h100-d's decode times that grow with "
            "the batch divided by the share; see docs/hardware.md"
        )
        scaled = scale(made["h100-p"].hardware, made["h100-d"].hardware, chip, source)
        letter = chip.name[-1].upper()
        description = f"Chip {letter} of the paper's Table 1: as P 4 nodes, as D 3 nodes"
        made[chip.name] = Shipped(description, scaled)
    return tuple(made.values())
