"""Multi-turn sessions of agents: each prompt repeats all that was said before.

::

    turn 1   [system][input 1]
    turn 2   [system][input 1][answer 1][input 2]
    turn 3   [system][input 1][answer 1][input 2][answer 2][input 3]

All sessions share the system prompt. A fixed number of sessions is under way at any
time: a request is the next turn of one of them, chosen evenly; the session ends after
a geometric number of turns, or when its next prompt would be longer than allowed, and
another takes its place. An answer is a placeholder segment as long as the answer: it is
not what the engine said, so it is computed when the next turn first brings it. The hit
rate follows; it is not asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.contract.agent import Span
from testbed.errors import PlanError
from testbed.workload.prefix.keys import Prompt

Column = NDArray[np.int64]
SYSTEM = 0
"""Segment of the shared system prompt; the others follow in order of their use."""


@dataclass(frozen=True, slots=True)
class SessionPrompts:
    """One entry a request: its prompt, its session (from 0) and its turn (from 1)."""

    prompts: tuple[Prompt, ...]
    session: Column
    turn: Column


@dataclass(slots=True)
class _Session:
    number: int
    said: Prompt
    tokens: int
    turn: int = 0


def session_prompts(
    input_tokens: Column,
    output_tokens: Column,
    concurrent: int,
    mean_turns: float,
    system_tokens: int,
    high_tokens: int,
    block_tokens: int,
    draw: np.random.Generator,
) -> SessionPrompts:
    """The prompts of requests that are turns of ``concurrent`` sessions.

    Args:
        input_tokens: new tokens that each request brings, in whole blocks.
        output_tokens: length of each answer; rounded up to whole blocks in later prompts.
        mean_turns: turns of a session before it ends by itself, at least 1.
        system_tokens: the shared start, rounded down to whole blocks; may be 0.
        high_tokens: longest prompt.

    Raises:
        PlanError: a first turn can be longer than ``high_tokens``, an input is not whole
            blocks, or there are no sessions or turns.
    """
    system = system_tokens // block_tokens * block_tokens
    _check(input_tokens, concurrent, mean_turns, system, high_tokens, block_tokens)
    count = input_tokens.size
    places = draw.integers(0, concurrent, count).tolist()
    last = (draw.random(count) < 1.0 / mean_turns).tolist()
    answers = (-(-output_tokens // block_tokens) * block_tokens).tolist()
    opening: Prompt = (Span(segment=SYSTEM, tokens=system),) if system else ()
    running = [_Session(place, opening, system) for place in range(concurrent)]
    opened, segment = concurrent, SYSTEM + 1
    prompts: list[Prompt] = []
    sessions: list[int] = []
    turns: list[int] = []
    for index, (place, new) in enumerate(zip(places, input_tokens.tolist(), strict=True)):
        session = running[place]
        if session.tokens + new > high_tokens:
            session = running[place] = _Session(opened, opening, system)
            opened += 1
        session.turn += 1
        prompt = (*session.said, Span(segment=segment, tokens=new))
        prompts.append(prompt)
        sessions.append(session.number)
        turns.append(session.turn)
        session.said = (*prompt, Span(segment=segment + 1, tokens=answers[index]))
        session.tokens += new + answers[index]
        segment += 2
        if last[index]:
            running[place] = _Session(opened, opening, system)
            opened += 1
    return SessionPrompts(
        prompts=tuple(prompts),
        session=np.array(sessions, dtype=np.int64),
        turn=np.array(turns, dtype=np.int64),
    )


def _check(
    input_tokens: Column,
    concurrent: int,
    mean_turns: float,
    system: int,
    high_tokens: int,
    block_tokens: int,
) -> None:
    if concurrent < 1 or not mean_turns >= 1.0:
        raise PlanError(
            "make sessions",
            f"{concurrent} sessions of {mean_turns:g} turns",
            "at least 1 session and 1 turn are needed",
            "raise them",
        )
    if (input_tokens % block_tokens).any() or (input_tokens < block_tokens).any():
        raise PlanError(
            "make sessions", "new tokens", f"are not whole blocks of {block_tokens} tokens"
        )
    longest = system + int(input_tokens.max(initial=0))
    if longest > high_tokens:
        raise PlanError(
            "make sessions",
            f"a first turn of {longest} tokens",
            f"is longer than the longest prompt, {high_tokens} tokens",
            "raise high, or shorten the system prompt or the turns",
        )
