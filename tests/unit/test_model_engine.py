"""The engine: one pass, step by step, batched and restored agree; so does transformers."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest
import torch

from testbed.contract.agent import ModelConfig
from testbed.errors import AgentError
from testbed_agents.model import attention as attention_module
from testbed_agents.model.engine import Engine
from testbed_agents.model.kv import Kv
from testbed_agents.model.llama import build_llama
from testbed_agents.model.load import load_model
from testbed_agents.model.prompt import base_document, prompt
from testbed_agents.model.protocol import Model, Step

LENGTH, HIT = 96, 64


@pytest.fixture(scope="module")
def model() -> Engine:
    return load_model(ModelConfig(name="nano"))


def generate(model: Model[Kv], kv: Kv, last: int, request: int, count: int) -> list[int]:
    """``count`` tokens, one step at a time."""
    tokens: list[int] = []
    for _ in range(count):
        last = model.decode([Step(kv, (last,), request)])[0].token
        tokens.append(last)
    return tokens


def answer(model: Model[Kv], request: int, count: int) -> list[int]:
    """Tokens of an uninterrupted engine."""
    tokens = prompt(5, request, HIT, LENGTH)
    return generate(model, model.prefill(tokens[:-1]), tokens[-1], request, count)


def test_step_by_step_equals_one_pass(model: Engine) -> None:
    tokens = prompt(5, 1, HIT, LENGTH)
    stepwise = Kv(model.layout)
    chosen = [model.decode([Step(stepwise, (token,), 1)])[0].token for token in tokens]
    at_once = model.extend(Step(Kv(model.layout), tokens, 1))
    assert chosen == [choice.token for choice in at_once]


def test_logits_of_both_ways_differ_by_rounding_only(model: Engine) -> None:
    tokens = prompt(5, 1, HIT, LENGTH)
    split = model.prefill(tokens[:50])
    difference = model.score(tokens)[50:] - model.score(tokens[50:], split)
    assert difference.abs().max().item() < 1e-11


def test_batched_equals_one_by_one(model: Engine) -> None:
    alone = [answer(model, request, 12) for request in range(9)]
    prompts = [prompt(5, request, HIT, LENGTH) for request in range(9)]
    rows = [model.prefill(tokens[:-1]) for tokens in prompts]
    last = [tokens[-1] for tokens in prompts]
    together: list[list[int]] = [[] for _ in prompts]
    for _ in range(12):
        steps = [Step(rows[i], (last[i],), i) for i in range(9)]
        for i, choice in enumerate(model.decode(steps)):
            together[i].append(choice.token)
            last[i] = choice.token
    assert together == alone


def test_a_batch_may_mix_lengths_and_token_counts(model: Engine) -> None:
    counts = (1, 3, 17, 40)
    tokens = [prompt(5, i, 0, 20 + 7 * i + count) for i, count in enumerate(counts)]
    mixed = [
        Step(model.prefill(t[:-count]), t[-count:], i)
        for i, (t, count) in enumerate(zip(tokens, counts, strict=True))
    ]
    single = [model.extend(Step(Kv(model.layout), t, i))[-1] for i, t in enumerate(tokens)]
    assert [c.token for c in model.decode(mixed)] == [c.token for c in single]


def test_a_sequence_goes_on_after_a_round_trip_over_blocks(model: Engine) -> None:
    tokens = prompt(5, 3, HIT, LENGTH)
    document = model.prefill(base_document(5, LENGTH))
    sent = [bytes(block) for block in model.prefill(tokens[HIT:], document.prefix(HIT)).blocks(2)]
    restored = document.prefix(HIT).join(model.restore(sent)).prefix(LENGTH - 1)
    assert generate(model, restored, tokens[-1], 3, 20) == answer(model, 3, 20)


def test_a_handoff_in_the_middle_changes_nothing(model: Engine) -> None:
    whole = answer(model, 4, 20)
    tokens = (*prompt(5, 4, HIT, LENGTH), *whole[:9])
    caught_up = model.extend(Step(model.prefill(tokens[:LENGTH]), tokens[LENGTH:], 4))
    assert caught_up[-1].token == whole[9]


def test_prefill_leaves_its_past_alone(model: Engine) -> None:
    past = model.prefill(base_document(5, 8))
    before = b"".join(past.blocks(1))
    model.prefill((1, 2, 3), past)
    assert b"".join(past.blocks(1)) == before


def test_a_sequence_may_branch_after_it_was_continued(model: Engine) -> None:
    """What attention keeps of a sequence grows with it alone: a branch has its own."""
    tokens = prompt(5, 6, HIT, LENGTH)
    trunk = model.prefill(tokens[:-1])
    whole = generate(model, trunk, tokens[-1], 6, 150)  # beyond the first room
    branch = trunk.prefix(LENGTH + 9)
    assert generate(model, branch, whole[9], 6, 20) == whole[10:30]
    model.prefill((1, 2, 3), trunk)
    assert generate(model, trunk, whole[-1], 6, 1) == answer(model, 6, 151)[-1:]


def test_rows_that_came_from_elsewhere_are_seen(model: Engine) -> None:
    """An increment joined behind a sequence that this engine continued before."""
    tokens = prompt(5, 7, HIT, LENGTH)
    here = model.prefill(tokens[:-1])
    whole = generate(model, here, tokens[-1], 7, 12)
    there = model.prefill(tokens[:-1])
    there.append(here.part(LENGTH - 1, LENGTH + 4).segments()[0])
    assert generate(model, there, whole[4], 7, 6) == whole[5:11]


def test_long_prompts_are_cut_to_bound_memory(
    model: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = prompt(5, 1, HIT, LENGTH)
    whole = model.score(tokens)
    monkeypatch.setattr(attention_module, "SCORES_MAX", 7 * LENGTH)
    assert torch.allclose(model.score(tokens), whole, rtol=0, atol=1e-11)


def test_seeded_weights_and_noise_depend_on_their_seeds(model: Engine) -> None:
    other = load_model(ModelConfig(name="nano", seed=1))
    greedy = load_model(ModelConfig(name="nano", sampling="greedy"))
    answers = {tuple(answer(one, 1, 8)) for one in (model, other, greedy)}
    assert len(answers) == 3
    assert answer(model, 1, 8) != answer(model, 2, 8)


def test_one_configuration_is_loaded_once(model: Engine) -> None:
    assert load_model(ModelConfig(name="nano")) is model


def test_progress_is_told_after_every_layer_with_output() -> None:
    watched = load_model(ModelConfig(name="nano", seed=3))
    told: list[None] = []
    watched.watch(lambda: told.append(None))
    watched.decode([Step(Kv(watched.layout), (1, 2), 0)])
    watched.watch(None)
    watched.decode([Step(Kv(watched.layout), (1, 2), 0)])
    assert len(told) == watched.layout.layers


def test_two_steps_of_one_sequence_are_refused(model: Engine) -> None:
    kv = model.prefill((1, 2))
    with pytest.raises(AgentError, match="same sequence"):
        model.decode([Step(kv, (1,), 0), Step(kv, (2,), 1)])


def test_a_step_without_tokens_is_refused(model: Engine) -> None:
    with pytest.raises(AgentError, match="no token"):
        model.decode([Step(model.prefill((1,)), (), 0)])


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_transformers_own_llama_agrees(model: Engine) -> None:
    """It rounds its softmax to fp32, hence the tolerance (logits have a spread of 8)."""
    tokens = prompt(5, 1, HIT, LENGTH)
    with torch.inference_mode():
        theirs = build_llama(model.weights)(torch.tensor([tokens])).logits[0]
    assert torch.allclose(model.score(tokens), theirs, rtol=0, atol=2e-4)


def test_another_process_computes_the_same_bits(model: Engine) -> None:
    code = (
        "import hashlib\n"
        "from testbed.contract.agent import ModelConfig\n"
        "from testbed_agents.model.load import load_model\n"
        "from testbed_agents.model.prompt import prompt\n"
        "kv = load_model(ModelConfig(name='nano')).prefill(prompt(5, 1, 64, 96))\n"
        "print(hashlib.sha256(b''.join(kv.blocks(1))).hexdigest())\n"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=paths)
    kv = model.prefill(prompt(5, 1, HIT, LENGTH))
    assert done.stdout.strip() == hashlib.sha256(b"".join(kv.blocks(1))).hexdigest()
