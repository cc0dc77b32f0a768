"""RLD[0:k] + MD[k:] is one engine's answer with ``smollm2-135m``, a model in fp32 that reads."""

from __future__ import annotations

import pytest

from testbed.contract.agent import ModelConfig
from testbed.contract.handoff import HandoffMode
from testbed_agents.model.flatfile import flat_path
from testbed_agents.model.load import GAP_BOUND, load_model
from testbed_agents.model.protocol import Step
from testbed_agents.model.text import TextPrompts
from tests.fakes.handoff_world import RealSequence, World

NAME = "smollm2-135m"
FLAT = flat_path(NAME)
MOST = 8
pytestmark = pytest.mark.skipif(
    not FLAT.exists(), reason=f"{FLAT} is missing: run python -m testbed_agents.model.convert"
)


@pytest.fixture(scope="module")
def asked() -> tuple[RealSequence, int, tuple[int, ...]]:
    """KV of a question but for its last token, that token, and one engine's answer."""
    model = load_model(ModelConfig(name=NAME, sampling="greedy"))
    *prompt, feed = TextPrompts(1, FLAT).prompt(0, 0, 40)
    kv = model.prefill(prompt)
    sequence = RealSequence(model, kv, 5)
    whole, last = kv.prefix(kv.length), feed
    tokens: list[int] = []
    for _ in range(MOST):
        choice = model.decode([Step(whole, (last,), 5)])[0]
        assert choice.gap > GAP_BOUND[NAME], "rounding might flip this token: ask something else"
        tokens.append(last := choice.token)
    return sequence, feed, tuple(tokens)


@pytest.mark.parametrize("mode", [HandoffMode.CATCH_UP, HandoffMode.ONE_SHOT])
@pytest.mark.parametrize("split", [0, 1, 4, MOST - 1, MOST])
def test_a_split_equals_one_engine(
    asked: tuple[RealSequence, int, tuple[int, ...]], mode: HandoffMode, split: int
) -> None:
    sequence, feed, answer = asked
    world = World(sequence, feed, MOST, mode)
    while world.relay.emitted < split and not world.relay.ended:
        world.relay_step()
    world.drain()
    assert world.client.outcome == "done"
    assert tuple(one.token for one in world.seen) == answer
