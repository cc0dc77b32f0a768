"""What a token costs in a public model: operations, bytes of weights, bytes of KV.

Mixture of experts: a pass over n tokens reads the parameters that every token uses,
and of the experts those that at least one token chose. With independent, even
routing that is the share 1 - (1 - chosen/experts)^n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelCost:
    """Costs of one model at one precision. FLOP are multiply and add, two a parameter.

    Attention of one query token behind c context tokens takes
    ``attention_flop + c * attention_flop_per_context`` operations and reads
    ``kv_read_bytes + c * kv_read_bytes_per_context`` bytes.
    """

    name: str
    layers: int
    shared_parameters: int
    """Used by every token."""
    expert_parameters: int
    """Of all routed experts together."""
    experts: int
    experts_per_token: int
    bytes_per_parameter: float
    attention_flop: float
    attention_flop_per_context: float
    kv_bytes_per_token: int
    kv_fixed_bytes: int
    kv_read_bytes: float
    kv_read_bytes_per_context: float
    source: str
    assumed: tuple[str, ...]
    """All that is not published, one sentence each."""

    @property
    def total_parameters(self) -> int:
        """All parameters."""
        return self.shared_parameters + self.expert_parameters

    @property
    def active_parameters(self) -> float:
        """Parameters that one token uses."""
        return self.shared_parameters + self.expert_parameters * self.chosen

    @property
    def chosen(self) -> float:
        """The share of the routed experts that one token uses."""
        return self.experts_per_token / self.experts

    @property
    def weight_bytes(self) -> float:
        """Memory of all weights."""
        return self.total_parameters * self.bytes_per_parameter

    @property
    def flop_per_token(self) -> float:
        """Operations of one token outside attention."""
        return 2 * self.active_parameters

    def read_bytes(self, tokens: float) -> float:
        """Bytes of weights that a pass over ``tokens`` tokens reads."""
        touched = 1 - math.pow(1 - self.chosen, tokens)
        read = self.shared_parameters * min(tokens, 1) + self.expert_parameters * touched
        return read * self.bytes_per_parameter

    def attention(self, context: float) -> float:
        """Operations of attention for one query token behind ``context`` tokens."""
        return self.attention_flop + context * self.attention_flop_per_context


# Geometry of DeepSeek-V4-Pro's attention. An entry of compressed KV in fp8 is 448 B + 64
# rope dimensions in bf16 + 8 B of scales = 584 B; an indexer key is 128 B + 4 B of scale.
# These give the public sizes in profiles/kv.yaml: 30 x (584 + 132) / 4 + 31 x 584 / 128 =
# 5,511 B a token and 61 x 128 x 584 = 4.56 MB of sliding window.
_CSA, _HCA, _WINDOW = 30, 31, 128
_HEADS, _DIM, _TOP = 128, 512, 1_024
_ENTRY, _KEY = 584, 132
_QUERY = 2 * 2 * _HEADS * _DIM
_INDEX = 2 * 64 * 128
_EXPERTS = 384 * 61 * 3 * 7_168 * 3_072

DEEPSEEK_V4_PRO = ModelCost(
    name="deepseek-v4-pro",
    layers=61,
    shared_parameters=round(49e9 - _EXPERTS * 6 / 384),
    expert_parameters=_EXPERTS,
    experts=384,
    experts_per_token=6,
    bytes_per_parameter=1.0,
    attention_flop=_QUERY * (_CSA * (_TOP + _WINDOW) + _HCA * _WINDOW),
    attention_flop_per_context=_CSA * _INDEX / 4 + _HCA * _QUERY / 128,
    kv_bytes_per_token=5_511,
    kv_fixed_bytes=4_560_000,
    kv_read_bytes=_CSA * _TOP * _ENTRY + 61 * _WINDOW * _ENTRY,
    kv_read_bytes_per_context=_CSA * _KEY / 4 + _HCA * _ENTRY / 128,
    source=(
        "DeepSeek-V4-Pro model card and configuration: 1.6T parameters, 49B active, 61 layers, "
        "hidden size 7168, 384 experts of 3072 with 6 chosen and 1 shared, 128 heads of 512, one "
        "KV head; sparse layers compress 4x and read the top 1024, heavily compressed ones 128x; "
        "sliding window 128; KV sizes as in profiles/kv.yaml"
    ),
    assumed=(
        "30 sparse and 31 heavily compressed layers: the split that gives the public bf16 and fp8 "
        "KV sizes exactly",
        "an indexer of 64 heads of 128, as in DeepSeek-V3.2",
        "weights in fp8, one byte a parameter: Hopper has no FP4 units, and it fits the paper's "
        "three H100 nodes as the minimal set-up (two hold 1.28 TB, three 1.92 TB)",
        "49B active parameters less 6 of 384 experts in 61 layers are used by every token",
        "tokens choose experts evenly and independently",
        "prefill attends over full context for every uncached token, no attention in fp8",
    ),
)
