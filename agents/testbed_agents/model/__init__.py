"""The model room: real causal language models, their KV rows and their prompts.

The only room that may import torch, transformers and tokenizers. It does no I/O
except reading the flat weights file, and knows nothing of networks, clocks or pools::

    prompt ──tokens──► Engine.prefill ──► Kv ──block_bytes──► (wire) ──► Kv.from_blocks
                                                                             │
                       Engine.decode ◄── crop to n-1, feed last token ◄──────┘

Importing the package pins the CPU code paths (see ``cpu``), because that has to
happen before torch is loaded; ``prompt``, ``layout`` and ``protocol`` stay torch-free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed_agents.model.cpu import pin

if TYPE_CHECKING:
    from testbed.contract.agent import ModelConfig

pin()


def preload(config: ModelConfig) -> None:
    """Load torch and the model before agents are forked; see ``load.preload``."""
    from testbed_agents.model import load

    load.preload(config)
