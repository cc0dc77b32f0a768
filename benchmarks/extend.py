"""Extend-decode of many token ids in one pass, against one step for each.

``python -m benchmarks.extend [--model smollm2-135m] [--tokens 100] [--context 256] [--runs 5]``

Both ways feed the same ids behind the same KV, on one thread, with the model that agents
run; they take turns, so that a busy machine slows both. The last choice of both must agree
(for a model in fp32: where its lead over the second exceeds the model's bound).
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import time

from benchmarks.figures import against, against_bar, spread
from benchmarks.machine import processor
from testbed.contract.agent import ModelConfig
from testbed_agents.model.engine import Engine
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import GAP_BOUND, load_model
from testbed_agents.model.protocol import Choice, Step

BAR = 5.0


def stepwise(model: Engine, kv: Kv, tokens: tuple[int, ...]) -> Choice:
    """One decode step for each id; the choice after the last."""
    chosen = [model.decode([Step(kv, (token,), 0)])[0] for token in tokens]
    return chosen[-1]


def at_once(model: Engine, kv: Kv, tokens: tuple[int, ...]) -> Choice:
    """All ids in one pass; the choice after the last."""
    return model.extend(Step(kv, tokens, 0))[-1]


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=("nano", "smollm2-135m"), default="smollm2-135m")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    model = load_model(ModelConfig(name=options.model, sampling="greedy"))
    draw = random.Random(1)
    prompt = [draw.randrange(1, 500) for _ in range(options.context)]
    tokens = tuple(draw.randrange(1, 500) for _ in range(options.tokens))
    past = model.prefill(prompt)
    taken: dict[str, list[float]] = {"stepwise": [], "at once": []}
    for run in range(options.runs + 1):
        choices: list[Choice] = []
        for name, way in (("stepwise", stepwise), ("at once", at_once)):
            kv = past.prefix(past.length)
            began = time.perf_counter()
            choices.append(way(model, kv, tokens))
            if run:  # the first is the warm-up
                taken[name].append(1000 * (time.perf_counter() - began))
        one, other = choices
        if one.token != other.token and one.gap > GAP_BOUND[options.model]:
            raise ValueError(f"both ways must agree: {one} and {other}")
    print(
        f"machine: {processor()}, load {os.getloadavg()[0]:.1f}, Linux {platform.release()}, "
        f"Python {platform.python_version()}, {options.model}, one thread, "
        f"{options.context} tokens of context"
    )
    slow = spread(f"{options.tokens} single steps", "ms", taken["stepwise"])
    fast = spread(f"extend-decode of {options.tokens}", "ms", taken["at once"])
    ratios = [a / b for a, b in zip(taken["stepwise"], taken["at once"], strict=True)]
    gain = spread("single steps / extend-decode, pair by pair", "x", ratios)
    print(slow, fast, gain, against(slow, fast), against_bar(gain, BAR), sep="\n")


if __name__ == "__main__":
    main()
