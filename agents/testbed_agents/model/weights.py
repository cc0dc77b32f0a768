"""Weights of a Llama as plain tensors, and the seeded ones of ``nano``.

The architecture is transformers' ``LlamaForCausalLM``; ``llama.py`` builds that class
from these tensors and the tests hold the engine to it. Agents need only torch: the
import of transformers costs several seconds and 150 MB in every lab guest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from testbed_agents.model.layout import KvLayout

DTYPES = {4: torch.float32, 8: torch.float64}
"""By the bytes of one number."""


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """Sizes of a Llama (names as in transformers' ``LlamaConfig``)."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    rope_theta: float
    rms_norm_eps: float
    item_bytes: int
    tied: bool
    """Whether the output head is the embedding."""

    @property
    def layout(self) -> KvLayout:
        """Rows of KV that this model makes."""
        return KvLayout(
            self.num_hidden_layers, self.num_key_value_heads, self.head_dim, self.item_bytes
        )


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One decoder layer; ``qkv`` and ``gate_up`` are stacked, so one product serves all."""

    input_norm: torch.Tensor
    qkv: torch.Tensor
    out: torch.Tensor
    mlp_norm: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


@dataclass(frozen=True, slots=True)
class Weights:
    """All tensors of a model."""

    shape: LlamaShape
    embedding: torch.Tensor
    layers: tuple[LayerWeights, ...]
    norm: torch.Tensor
    head: torch.Tensor


def tensor_shapes(shape: LlamaShape) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor, in the order the engine reads them."""
    hidden, inner, dim = shape.hidden_size, shape.intermediate_size, shape.head_dim
    heads, kv_heads = shape.num_attention_heads, shape.num_key_value_heads
    shapes: dict[str, tuple[int, ...]] = {"embedding": (shape.vocab_size, hidden)}
    for index in range(shape.num_hidden_layers):
        shapes |= {
            f"layer.{index}.input_norm": (hidden,),
            f"layer.{index}.qkv": ((heads + 2 * kv_heads) * dim, hidden),
            f"layer.{index}.out": (hidden, heads * dim),
            f"layer.{index}.mlp_norm": (hidden,),
            f"layer.{index}.gate_up": (2 * inner, hidden),
            f"layer.{index}.down": (hidden, inner),
        }
    shapes["norm"] = (hidden,)
    if not shape.tied:
        shapes["head"] = (shape.vocab_size, hidden)
    return shapes


def assemble(shape: LlamaShape, tensors: Mapping[str, torch.Tensor]) -> Weights:
    """Weights from tensors named and shaped as ``tensor_shapes`` says."""
    layers = tuple(
        LayerWeights(
            input_norm=tensors[f"layer.{index}.input_norm"],
            qkv=tensors[f"layer.{index}.qkv"],
            out=tensors[f"layer.{index}.out"],
            mlp_norm=tensors[f"layer.{index}.mlp_norm"],
            gate_up=tensors[f"layer.{index}.gate_up"],
            down=tensors[f"layer.{index}.down"],
        )
        for index in range(shape.num_hidden_layers)
    )
    head = tensors["embedding"] if shape.tied else tensors["head"]
    return Weights(shape, tensors["embedding"], layers, tensors["norm"], head)
