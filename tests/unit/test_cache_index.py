"""The router's index: what each instance is believed to hold, within a bound."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from testbed_agents.cache import PrefixIndex

Prompt = tuple[int, ...]

INSTANCES = ("md1", "md2", "md3")
PROMPTS = st.lists(st.integers(0, 2), max_size=7).map(tuple)


def test_one_walk_tells_the_length_at_every_instance() -> None:
    index = PrefixIndex(100)
    index.record("md1", (1, 2, 3, 4))
    index.record("md2", (1, 2, 9))
    index.record("md3", (7,))
    assert index.longest((1, 2, 3, 5)) == {"md1": 3, "md2": 2}
    assert index.longest(()) == {}


def test_the_least_recently_sent_is_forgotten_first_from_its_end() -> None:
    index = PrefixIndex(5)
    index.record("md1", (1, 2, 3))
    index.record("md1", (4, 5))
    index.record("md1", (6,))
    assert index.longest((1, 2, 3)) == {"md1": 2}
    assert index.held("md1") == 5


def test_the_bound_of_one_instance_takes_nothing_from_another() -> None:
    index = PrefixIndex(2)
    index.record("md1", (1, 2))
    index.record("md2", (3, 4))
    index.record("md2", (5, 6))
    assert index.longest((1, 2)) == {"md1": 2}
    assert index.longest((3, 4)) == {}


def test_a_prompt_longer_than_the_bound_is_known_by_its_beginning() -> None:
    index = PrefixIndex(3)
    index.record("md1", (1, 2, 3, 4, 5))
    assert index.longest((1, 2, 3, 4, 5)) == {"md1": 3}


def test_an_instance_that_is_gone_leaves_nothing() -> None:
    index = PrefixIndex(9)
    index.record("md1", (1, 2))
    index.record("md2", (1,))
    index.forget("md1")
    assert index.longest((1, 2)) == {"md2": 1}
    assert index.held("md1") == 0
    index.forget("never seen")
    index.check()


def test_what_an_instance_denies_is_forgotten_and_the_rest_can_still_be() -> None:
    index = PrefixIndex(5)
    index.record("md1", (1, 2, 3, 4))
    index.record("md2", (1, 2, 3))
    index.shorten("md1", (1, 2, 3, 4), 1)
    assert index.longest((1, 2, 3, 4)) == {"md1": 1, "md2": 3}
    index.check()
    index.record("md1", (7, 7, 7, 7, 7))
    assert index.longest((1, 2)) == {"md2": 2}
    index.check()


def test_a_bound_below_one_block_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        PrefixIndex(0)


@pytest.mark.parametrize("blocks", [-1, 3])
def test_a_prompt_cannot_be_shortened_to_more_than_itself(blocks: int) -> None:
    with pytest.raises(ValueError, match="of 2 blocks"):
        PrefixIndex(4).shorten("md1", (1, 2), blocks)


class IndexMachine(RuleBasedStateMachine):
    """Against one dictionary of prefixes an instance."""

    @initialize(bound=st.integers(1, 12))
    def make(self, bound: int) -> None:
        self.index = PrefixIndex(bound)
        self.bound = bound
        self.held: dict[str, dict[Prompt, int]] = {name: {} for name in INSTANCES}
        self.now = 0

    @rule(name=st.sampled_from(INSTANCES), prompt=PROMPTS)
    def record(self, name: str, prompt: Prompt) -> None:
        self.index.record(name, prompt)
        self.now += 1
        held = self.held[name]
        held.update({prompt[: n + 1]: self.now for n in range(len(prompt))})
        while len(held) > self.bound:
            inner = {prefix[:-1] for prefix in held}
            del held[min((p for p in held if p not in inner), key=held.__getitem__)]

    @rule(name=st.sampled_from(INSTANCES), prompt=PROMPTS, keep=st.integers(0, 7))
    def shorten(self, name: str, prompt: Prompt, keep: int) -> None:
        keep = min(keep, len(prompt))
        self.index.shorten(name, prompt, keep)
        if keep < len(prompt):
            wrong = prompt[: keep + 1]
            self.held[name] = {p: at for p, at in self.held[name].items() if p[: keep + 1] != wrong}

    @rule(name=st.sampled_from(INSTANCES))
    def forget(self, name: str) -> None:
        self.index.forget(name)
        self.held[name] = {}

    @rule(prompt=PROMPTS)
    def longest(self, prompt: Prompt) -> None:
        lengths = {
            name: max((n for n in range(len(prompt) + 1) if prompt[:n] in held), default=0)
            for name, held in self.held.items()
        }
        assert self.index.longest(prompt) == {name: n for name, n in lengths.items() if n}

    @invariant()
    def all_counts_are_the_models(self) -> None:
        if not hasattr(self, "index"):
            return
        self.index.check()
        for name, held in self.held.items():
            assert self.index.held(name) == len(held)
            for prefix in held:
                assert self.index.longest(prefix)[name] == len(prefix)


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(max_examples=60, deadline=None)
