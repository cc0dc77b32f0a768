"""Efficiencies: chosen where nothing is published, solved from anchors where something is.

Three are solved in closed form, so that the compiled profiles meet their anchors
exactly: the overhead of a layer, of an exchange between nodes, and of a copy. The speed of
prefill has no closed form; ``fit_prefill`` bisects it and the result is written down here.
"""

from __future__ import annotations

import math
from dataclasses import replace

from testbed.hardware import anchors
from testbed.hardware.chip import H100_SXM, H200_SXM
from testbed.hardware.compile import compile_roofline
from testbed.hardware.model_cost import DEEPSEEK_V4_PRO
from testbed.hardware.roofline import Efficiency, Instance, Roofline
from testbed.hardware.waiting import percentile_s

H100_P = Instance("h100-p", H100_SXM, 4)
H100_RLD = Instance("h100-rld", H100_SXM, 3)
H100_D = Instance("h100-d", H100_SXM, 3)
H200_MD = Instance("h200-md", H200_SXM, 2)

EXTEND_WIDTH = 16
"""Tokens that extend-decode feeds to one sequence in one step (chosen, see docs/hardware.md)."""

EXTEND_STEPS = math.ceil(anchors.EXTEND_TOKENS / EXTEND_WIDTH)

CHOSEN = Efficiency(
    prefill_compute=0.01771,
    decode_compute=0.5,
    memory=0.6,
    link=0.8,
    usable_memory=0.9,
    layer_s=0.0,
    exchange_s=0.0,
    copy_s=anchors.COPIES_S / 2,
)
"""Before the overheads are solved; ``prefill_compute`` is the result of ``fit_prefill``."""


def calibrated() -> Efficiency:
    """All efficiencies of the profiles that this project ships."""
    decode_s = _decode_overhead_s()
    main_s = _main_overhead_s()
    layers = DEEPSEEK_V4_PRO.layers
    exchange_s = (decode_s - main_s) / layers
    layer_s = main_s / layers - exchange_s
    return replace(CHOSEN, exchange_s=exchange_s, layer_s=layer_s)


def roofline(instance: Instance, efficiency: Efficiency) -> Roofline:
    """DeepSeek-V4-Pro on an instance."""
    return Roofline(instance, DEEPSEEK_V4_PRO, efficiency)


def sequences(requests_s: float, step_s: float) -> float:
    """Sequences that decode at once on one of the decode instances, by Little's law."""
    return requests_s * anchors.MEAN_OUTPUT_TOKENS / anchors.DECODE_INSTANCES * step_s


def after_prefill_s(efficiency: Efficiency) -> float:
    """From the end of prefill to the first token: all KV over RDMA and one step of D."""
    first = roofline(H100_D, efficiency)
    size = first.model.kv_fixed_bytes + first.model.kv_bytes_per_token * anchors.INPUT_TOKENS
    return anchors.TPOT_LIMIT_S + size * 8 / anchors.RDMA_BIT_S


def fit_prefill(efficiency: Efficiency) -> float:
    """The share of peak compute at which the median of TTFT is the published one.

    Takes about ten seconds; its result is the figure in ``CHOSEN``.
    """
    after_s = after_prefill_s(efficiency)
    low, high = 0.005, 0.5
    for _ in range(24):
        middle = (low + high) / 2
        tried = roofline(H100_P, replace(efficiency, prefill_compute=middle))
        median_s = percentile_s(tried.prefill_s, anchors.PDD_REQUESTS_S, 0.5) + after_s
        low, high = (middle, high) if median_s > anchors.TTFT_MEDIAN_S else (low, middle)
    return high


def _decode_overhead_s() -> float:
    """D at the published rate of one data centre takes exactly the limit on TPOT a step."""
    base_s, sequence_s, _ = _line(H100_D)
    batch = sequences(anchors.IDC_REQUESTS_S, anchors.TPOT_LIMIT_S)
    return anchors.TPOT_LIMIT_S - base_s - batch * sequence_s


def _main_overhead_s() -> float:
    """MD at the published rate catches 100 tokens up in the published time.

    Besides the catching sequence, the batch is what the rate keeps busy.
    """
    base_s, sequence_s, extra_s = _line(H200_MD)
    extra = anchors.EXTEND_TOKENS - EXTEND_STEPS
    step_s = (anchors.EXTEND_S - extra * extra_s) / EXTEND_STEPS - sequence_s
    return step_s - base_s - sequences(anchors.PDD_REQUESTS_S, step_s) * sequence_s


def _line(instance: Instance) -> tuple[float, float, float]:
    """Base without overhead, time of a sequence with its context, of an extra token."""
    line = compile_roofline(roofline(instance, CHOSEN), "no overhead yet")
    sequence_s = line.decode_sequence_s + anchors.MEAN_CONTEXT_TOKENS * line.decode_context_s
    return line.decode_base_s, sequence_s, line.decode_extra_token_s
