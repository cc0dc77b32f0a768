"""transformers' Llama: it reads GGUF, and it is the yardstick of our engine.

The only module that imports transformers, and only in the functions that need it:
no agent in a lab guest pays for it.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from testbed.errors import AgentError
from testbed_agents.model.weights import DTYPES, LlamaShape, Weights

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM


def read_gguf(path: Path) -> tuple[LlamaShape, dict[str, torch.Tensor], bytes]:
    """Shape, fp32 tensors in the engine's names, and tokenizer JSON of a Llama in GGUF."""
    from transformers import AutoTokenizer, LlamaForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    folder, name = str(path.parent), path.name
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bar knows no off switch
        model = LlamaForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    shape = _shape_of(model, path)
    with tempfile.TemporaryDirectory() as scratch:
        AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(scratch)
        tokenizer = (Path(scratch) / "tokenizer.json").read_bytes()
    return shape, _stacked(shape, model.state_dict()), tokenizer


def build_llama(weights: Weights) -> LlamaForCausalLM:
    """transformers' own model with these very weights, in evaluation mode.

    Its RMS norm rounds to fp32 in every layer, which would blur fp64; torch's replaces it.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = weights.shape
    config = LlamaConfig(
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.num_hidden_layers,
        num_attention_heads=shape.num_attention_heads,
        num_key_value_heads=shape.num_key_value_heads,
        head_dim=shape.head_dim,
        vocab_size=shape.vocab_size,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        rms_norm_eps=shape.rms_norm_eps,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=65_536,
        dtype=DTYPES[shape.item_bytes],
    )
    model: LlamaForCausalLM = LlamaForCausalLM._from_config(  # type: ignore[no-untyped-call]
        config, attn_implementation="eager"
    )
    model.eval()  # type: ignore[no-untyped-call]
    for layer in model.model.layers:
        layer.input_layernorm = _norm(shape)
        layer.post_attention_layernorm = _norm(shape)
    model.model.norm = _norm(shape)
    model.load_state_dict(_unstacked(weights))
    return model


def _norm(shape: LlamaShape) -> torch.nn.RMSNorm:
    return torch.nn.RMSNorm(
        shape.hidden_size, eps=shape.rms_norm_eps, dtype=DTYPES[shape.item_bytes]
    )


def _shape_of(model: LlamaForCausalLM, path: Path) -> LlamaShape:
    """Sizes from transformers' configuration.

    Raises:
        AgentError: the model is not a plain Llama of the kind the engine runs.
    """
    config = model.config
    rope, kv_heads, dim = config.rope_parameters, config.num_key_value_heads, config.head_dim
    theta = rope.get("rope_theta") if rope and rope.get("rope_type") == "default" else None
    if not isinstance(theta, float) or kv_heads is None or dim is None or config.attention_bias:
        raise AgentError("read GGUF", str(path), f"not a plain Llama: {config!r}")
    return LlamaShape(
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        num_key_value_heads=kv_heads,
        head_dim=dim,
        vocab_size=config.vocab_size,
        rope_theta=theta,
        rms_norm_eps=config.rms_norm_eps,
        item_bytes=torch.float32.itemsize,
        tied=bool(config.tie_word_embeddings),
    )


def _stacked(shape: LlamaShape, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """From transformers' names to the engine's."""
    tensors = {"embedding": state["model.embed_tokens.weight"], "norm": state["model.norm.weight"]}
    if not shape.tied:
        tensors["head"] = state["lm_head.weight"]
    for index in range(shape.num_hidden_layers):
        old, new = f"model.layers.{index}", f"layer.{index}"
        heads = [state[f"{old}.self_attn.{part}_proj.weight"] for part in "qkv"]
        inner = [state[f"{old}.mlp.{part}_proj.weight"] for part in ("gate", "up")]
        tensors |= {
            f"{new}.input_norm": state[f"{old}.input_layernorm.weight"],
            f"{new}.qkv": torch.cat(heads),
            f"{new}.out": state[f"{old}.self_attn.o_proj.weight"],
            f"{new}.mlp_norm": state[f"{old}.post_attention_layernorm.weight"],
            f"{new}.gate_up": torch.cat(inner),
            f"{new}.down": state[f"{old}.mlp.down_proj.weight"],
        }
    return tensors


def _unstacked(weights: Weights) -> dict[str, torch.Tensor]:
    """From the engine's names to transformers'."""
    shape = weights.shape
    queries = shape.num_attention_heads * shape.head_dim
    kv = shape.num_key_value_heads * shape.head_dim
    state = {
        "model.embed_tokens.weight": weights.embedding,
        "model.norm.weight": weights.norm,
        "lm_head.weight": weights.head,
    }
    for index, layer in enumerate(weights.layers):
        name = f"model.layers.{index}"
        query, key, value = torch.split(layer.qkv, [queries, kv, kv])
        gate, up = layer.gate_up.chunk(2)
        state |= {
            f"{name}.input_layernorm.weight": layer.input_norm,
            f"{name}.self_attn.q_proj.weight": query,
            f"{name}.self_attn.k_proj.weight": key,
            f"{name}.self_attn.v_proj.weight": value,
            f"{name}.self_attn.o_proj.weight": layer.out,
            f"{name}.post_attention_layernorm.weight": layer.mlp_norm,
            f"{name}.mlp.gate_proj.weight": gate,
            f"{name}.mlp.up_proj.weight": up,
            f"{name}.mlp.down_proj.weight": layer.down,
        }
    return state
