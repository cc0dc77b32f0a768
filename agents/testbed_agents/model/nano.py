"""``nano``: a two-layer Llama in fp64 with seeded weights, small enough to fork 30 times.

Usual initialisation (std 0.02) makes answers fall into short cycles, which hides
corruption; a wide one with seeded sampling does not (64 of 64 answers). Of its
corrupted blocks (one token of 512, zeroed) 8 % show within 2 output tokens and 42 %
within 16; ``tests/unit/test_model_qualification.py`` measures both. fp64 leaves one-pass,
step-by-step and batched evaluation so close (1e-12) that their tokens agree.
"""

from __future__ import annotations

import torch

from testbed_agents.model.weights import LlamaShape, Weights, assemble, tensor_shapes

NANO_SHAPE = LlamaShape(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    vocab_size=512,
    rope_theta=10_000.0,
    rms_norm_eps=1e-6,
    item_bytes=8,
    tied=False,
)

_QUERY_KEY, _VALUE, _OUT, _MLP, _EMBEDDING, _HEAD = 0.2, 0.3, 1.0, 0.3, 0.1, 1.0
"""Standard deviations. Attention that is neither flat nor a single peak, and that
outweighs the embedding, made corrupted blocks show most often (grid of 15, measured)."""


def nano_weights(seed: int) -> Weights:
    """Normal weights; norms are ones."""
    generator = torch.Generator().manual_seed(seed)
    turned = (NANO_SHAPE.num_attention_heads + NANO_SHAPE.num_key_value_heads) * NANO_SHAPE.head_dim
    tensors: dict[str, torch.Tensor] = {}
    for name, size in tensor_shapes(NANO_SHAPE).items():
        if name.endswith("norm"):
            tensors[name] = torch.ones(size, dtype=torch.float64)
            continue
        tensor = torch.randn(size, dtype=torch.float64, generator=generator)
        if name.endswith("qkv"):
            tensor[:turned] *= _QUERY_KEY
            tensor[turned:] *= _VALUE
        else:
            tensor *= _scale(name)
        tensors[name] = tensor
    return assemble(NANO_SHAPE, tensors)


def _scale(name: str) -> float:
    match name.rpartition(".")[2]:
        case "out":
            return _OUT
        case "embedding":
            return _EMBEDDING
        case "head":
            return _HEAD
        case _:
            return _MLP
