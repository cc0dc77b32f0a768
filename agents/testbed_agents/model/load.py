"""From a ``ModelConfig`` to a model and its prompts; what the agents' zygote calls."""

from __future__ import annotations

import functools
import gc
from pathlib import Path
from typing import Final

import torch

from testbed.contract.agent import ModelConfig
from testbed_agents.model.engine import Engine
from testbed_agents.model.flatfile import flat_path, read_weights
from testbed_agents.model.nano import nano_weights
from testbed_agents.model.prompt import Prompts, SeededPrompts
from testbed_agents.model.protocol import Step
from testbed_agents.model.weights import Weights

GAP_BOUND: Final = {"nano": 0.0, "smollm2-135m": 1e-3}
"""A token may differ from the reference's only where its gap lies below this (logits)."""


@functools.cache
def load_model(config: ModelConfig) -> Engine:
    """The model, on one thread; the same one at every call, so that forks share it.

    Raises:
        AgentError: its weights are missing or damaged.
    """
    torch.set_num_threads(1)
    return Engine(_weights(config), config.seed, config.sampling)


def load_prompts(config: ModelConfig, seed: int) -> Prompts:
    """The prompts of a run: random tokens for ``nano``, words for a model that reads.

    Raises:
        AgentError: the tokenizer is missing or damaged.
    """
    if config.name == "nano":
        return SeededPrompts(seed)
    from testbed_agents.model.text import TextPrompts

    return TextPrompts(seed, _flat(config))


def preload(config: ModelConfig) -> Engine:
    """Load the model, run every kernel once, and freeze: call it before forking agents.

    Forked agents share all of it. ``gc.freeze`` keeps the collector from writing into
    the shared pages (which would copy them into every agent).
    """
    model = load_model(config)
    kv = model.prefill((1, 2, 3))
    model.decode([Step(kv.prefix(2), (3,), 0), Step(kv.prefix(1), (2, 3), 1)])
    gc.collect()
    gc.freeze()
    return model


def _weights(config: ModelConfig) -> Weights:
    return nano_weights(config.seed) if config.name == "nano" else read_weights(_flat(config))


def _flat(config: ModelConfig) -> Path:
    return Path(config.weights) if config.weights else flat_path(config.name)
