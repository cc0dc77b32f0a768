"""Prompts as pure functions of (seed, request id): tokens any process can make anew.

All requests share one *base document*; a request with ``hit`` cached tokens is the
first ``hit`` tokens of that document followed by a suffix of its own::

    base document   b0 b1 b2 b3 b4 b5 b6 b7 …
    request 12      b0 b1 b2 b3 s0 s1 s2 s3        hit = 4, n = 8

Nothing here imports torch or numpy. Counts are real tokens, never emulated ones.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from testbed.errors import AgentError


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The ids a seeded prompt draws from: ``first`` … ``size - 1`` (below are specials)."""

    size: int
    first: int = 0


NANO_VOCABULARY = Vocabulary(size=512)


class Prompts(Protocol):
    """Where a process gets the tokens of a request from."""

    def base_document(self, length: int) -> tuple[int, ...]:
        """First ``length`` tokens of the shared document."""
        ...

    def prompt(self, request: int, hit: int, length: int) -> tuple[int, ...]:
        """All ``length`` tokens of a request, of which ``hit`` come from the document."""
        ...

    def spans(self, spans: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        """Tokens of spans (segment, tokens): the beginning of each segment, one after another."""
        ...

    def text(self, tokens: tuple[int, ...]) -> str | None:
        """Tokens as words; None where they mean nothing."""
        ...


@dataclass(frozen=True, slots=True)
class SeededPrompts:
    """Uniformly random tokens: no two suffixes share more than chance allows."""

    seed: int
    vocabulary: Vocabulary = NANO_VOCABULARY

    def base_document(self, length: int) -> tuple[int, ...]:
        """First ``length`` tokens of the shared document."""
        return base_document(self.seed, length, self.vocabulary)

    def prompt(self, request: int, hit: int, length: int) -> tuple[int, ...]:
        """All ``length`` tokens of a request, of which ``hit`` come from the document."""
        return prompt(self.seed, request, hit, length, self.vocabulary)

    def spans(self, spans: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        """Tokens of spans (segment, tokens)."""
        tokens: tuple[int, ...] = ()
        for segment, length in spans:
            room = 1 << max(length - 1, 0).bit_length()
            tokens += _segment(self.seed, segment, room, self.vocabulary)[:length]
        return tokens

    def text(self, tokens: tuple[int, ...]) -> None:
        """Random tokens are no words."""


def base_document(
    seed: int, length: int, vocabulary: Vocabulary = NANO_VOCABULARY
) -> tuple[int, ...]:
    """First ``length`` tokens of the document of ``seed``; shorter ones are its prefixes."""
    return _document(seed, 1 << max(length - 1, 0).bit_length(), vocabulary)[:length]


@lru_cache(maxsize=8)
def _document(seed: int, length: int, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Kept, because every request starts with a piece of the same document."""
    return _draw(f"document/{seed}", length, vocabulary)


@lru_cache(maxsize=256)
def _segment(seed: int, segment: int, length: int, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Kept, because prompts that share a prefix are read one after another."""
    return _draw(f"segment/{seed}/{segment}", length, vocabulary)


def prompt(
    seed: int, request: int, hit: int, length: int, vocabulary: Vocabulary = NANO_VOCABULARY
) -> tuple[int, ...]:
    """The first ``hit`` tokens of the document, then ``length - hit`` tokens of its own.

    Raises:
        AgentError: ``hit`` or ``length`` is not a sensible number of tokens.
    """
    check_prompt(request, hit, length)
    suffix = _draw(f"suffix/{seed}/{request}", length - hit, vocabulary)
    return base_document(seed, hit, vocabulary) + suffix


def check_prompt(request: int, hit: int, length: int) -> None:
    """Refuse lengths that no prompt can have.

    Raises:
        AgentError: naming the request.
    """
    if length < 1 or not 0 <= hit <= length:
        raise AgentError(
            "make prompt",
            f"request {request}",
            f"{hit} cached of {length} real tokens",
            "a prompt has at least one token and at most all of them are cached",
        )


def _draw(purpose: str, length: int, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Independent tokens of one purpose; longer draws extend shorter ones.

    ``getrandbits`` of the Mersenne Twister is stable over Python versions; 32 bits
    against at most 2**16 ids leave a bias below 2**-16.
    """
    generator = random.Random(int.from_bytes(hashlib.sha256(purpose.encode()).digest()))
    bits, span, first = generator.getrandbits, vocabulary.size - vocabulary.first, vocabulary.first
    return tuple([first + bits(32) % span for _ in range(length)])
