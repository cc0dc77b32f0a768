"""Is ``nano`` fit for its purpose: does it show what goes wrong with its KV?

Measured with 500 requests of 512 real tokens, 448 of them cached, blocks of one token,
one corruption each; share of requests whose output tokens change:

    corruption of one block of 64            2 output tokens   16 output tokens
    zeroed                                         8 %              42 %
    swapped with another block                    17 %              68 %
    top mantissa bit of one number flipped       0.4 %               2 %

Tokens alone do not catch every corruption. Digests do; tokens are the second line.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from testbed.contract.agent import ModelConfig
from testbed_agents.model.engine import Engine
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model
from testbed_agents.model.prompt import base_document, prompt
from testbed_agents.model.protocol import Step

LENGTH, HIT, REQUESTS = 512, 448, 100
NUMBER_BYTES = 8
Blocks = list[bytes]


@pytest.fixture(scope="module")
def model() -> Engine:
    return load_model(ModelConfig(name="nano"))


def decode_all(model: Engine, rows: list[Kv], last: list[int], count: int) -> list[list[int]]:
    """Outputs of many sequences, decoded together."""
    outputs: list[list[int]] = [[] for _ in rows]
    feed = list(last)
    for _ in range(count):
        steps = [Step(rows[i], (feed[i],), i) for i in range(len(rows))]
        for i, choice in enumerate(model.decode(steps)):
            outputs[i].append(choice.token)
            feed[i] = choice.token
    return outputs


def zeroed(blocks: Blocks, draw: random.Random) -> Blocks:
    index = draw.randrange(len(blocks) - 1)
    return [bytes(len(b)) if i == index else b for i, b in enumerate(blocks)]


def flipped(blocks: Blocks, draw: random.Random) -> Blocks:
    index = draw.randrange(len(blocks) - 1)
    changed = bytearray(blocks[index])
    changed[draw.randrange(len(changed) // NUMBER_BYTES) * NUMBER_BYTES + 6] ^= 0x08
    return [bytes(changed) if i == index else b for i, b in enumerate(blocks)]


def swapped(blocks: Blocks, draw: random.Random) -> Blocks:
    one, other = draw.sample(range(len(blocks) - 1), 2)
    mixed = list(blocks)
    mixed[one], mixed[other] = blocks[other], blocks[one]
    return mixed


def untouched(blocks: Blocks, _: random.Random) -> Blocks:
    return blocks


def outputs_after(
    model: Engine, corrupt: Callable[[Blocks, random.Random], Blocks], count: int
) -> list[list[int]]:
    """Outputs of all requests whose blocks went through ``corrupt``."""
    document = model.prefill(base_document(1, LENGTH))
    rows: list[Kv] = []
    last: list[int] = []
    for request in range(REQUESTS):
        tokens = prompt(1, request, HIT, LENGTH)
        sent = model.prefill(tokens[HIT:], document.prefix(HIT)).blocks(1)
        blocks = corrupt([bytes(block) for block in sent], random.Random(request))
        rows.append(document.prefix(HIT).join(model.restore(blocks)).prefix(LENGTH - 1))
        last.append(tokens[-1])
    return decode_all(model, rows, last, count)


@pytest.fixture(scope="module")
def good(model: Engine) -> list[list[int]]:
    return outputs_after(model, untouched, 16)


@pytest.mark.parametrize(
    ("corrupt", "after_two", "after_sixteen"),
    [(zeroed, 0.05, 0.3), (swapped, 0.1, 0.6), (flipped, 0.0, 0.01)],
)
def test_corrupted_blocks_change_tokens(
    model: Engine,
    good: list[list[int]],
    corrupt: Callable[[Blocks, random.Random], Blocks],
    after_two: float,
    after_sixteen: float,
) -> None:
    bad = outputs_after(model, corrupt, 16)
    two = sum(a[:2] != b[:2] for a, b in zip(good, bad, strict=True)) / REQUESTS
    sixteen = sum(a != b for a, b in zip(good, bad, strict=True)) / REQUESTS
    assert two >= after_two
    assert sixteen >= after_sixteen


def test_answers_do_not_fall_into_cycles(model: Engine) -> None:
    """64 of 64 answers of 200 tokens: no period up to 50 in the second half of any."""
    prompts = [prompt(2, request, 16, 32) for request in range(64)]
    rows = [model.prefill(tokens[:-1]) for tokens in prompts]
    outputs = decode_all(model, rows, [tokens[-1] for tokens in prompts], 200)
    cyclic = [o for o in outputs if any(o[100 + p :] == o[100:-p] for p in range(1, 51))]
    assert cyclic == []
    assert min(len(set(output)) for output in outputs) > 80
