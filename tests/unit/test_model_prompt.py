"""Prompts: pure functions of seed and request, with the promised prefixes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import AgentError
from testbed_agents.model.prompt import (
    NANO_VOCABULARY,
    SeededPrompts,
    Vocabulary,
    base_document,
    prompt,
)

PINNED = (318, 287, 319, 349, 39, 490)
"""Recorded tokens: whoever changes them makes old runs incomparable."""

SEEDS = st.integers(0, 2**32)


@given(seed=SEEDS, short=st.integers(0, 200), more=st.integers(0, 200))
def test_a_shorter_document_is_a_prefix_of_a_longer_one(seed: int, short: int, more: int) -> None:
    assert base_document(seed, short + more)[:short] == base_document(seed, short)


@given(seed=SEEDS, request=st.integers(0, 10**6), hit=st.integers(0, 60), own=st.integers(0, 60))
def test_a_prompt_starts_with_the_document(seed: int, request: int, hit: int, own: int) -> None:
    if hit + own == 0:
        return
    tokens = prompt(seed, request, hit, hit + own)
    assert len(tokens) == hit + own
    assert tokens[:hit] == base_document(seed, hit)
    assert all(0 <= token < NANO_VOCABULARY.size for token in tokens)


def test_requests_have_suffixes_of_their_own() -> None:
    suffixes = {prompt(7, request, 16, 48)[16:] for request in range(500)}
    assert len(suffixes) == 500


def test_special_tokens_are_never_drawn() -> None:
    assert min(base_document(3, 5000, Vocabulary(size=32, first=17))) == 17


def test_tokens_of_a_known_seed_never_change() -> None:
    assert prompt(1, 2, 3, 6) == SeededPrompts(1).prompt(2, 3, 6)
    assert prompt(1, 2, 3, 6) == PINNED


@pytest.mark.parametrize(("hit", "length"), [(0, 0), (-1, 4), (5, 4)])
def test_impossible_lengths_are_refused(hit: int, length: int) -> None:
    with pytest.raises(AgentError, match="request 9"):
        prompt(0, 9, hit, length)


def test_prompts_need_no_torch() -> None:
    code = "import sys, testbed_agents.model.prompt; sys.exit('torch' in sys.modules)"
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], check=False, env=paths)
    assert done.returncode == 0
