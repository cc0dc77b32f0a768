"""Tokens of one answer as MD knows them, without a gap: told, or computed here. Pure."""

from __future__ import annotations

from collections.abc import Sequence


class Known:
    """The answer so far.

    Args:
        most: output tokens of the whole answer at most.
        stop: tokens that end an answer.
    """

    def __init__(self, most: int, stop: frozenset[int]) -> None:
        if most < 1:
            raise ValueError("an answer has at least one token")
        self.tokens: list[int] = []
        self.heard = 0
        """Of these, told by others without a gap."""
        self.last: int | None = None
        """Position of the token that ends the answer, once known."""
        self._most = most
        self._stop = stop
        self._early: dict[int, int] = {}

    def add(self, token: int) -> None:
        """The next token; nothing comes behind the last."""
        if self.last is not None:
            return
        self.tokens.append(token)
        if token in self._stop or len(self.tokens) == self._most:
            self.last = len(self.tokens) - 1

    def compute(self, position: int, token: int) -> bool:
        """This side chose ``token`` there; False where it contradicts what is known."""
        if position < len(self.tokens):
            return self.tokens[position] == token
        self.add(token)
        return True

    def hear(self, first: int, tokens: Sequence[int]) -> int | None:
        """Tokens from ``first`` on, perhaps again, perhaps with a gap before them.

        Returns the first position that contradicts what is known, if any.
        """
        for position, token in enumerate(tokens, first):
            if position < len(self.tokens) and self.tokens[position] != token:
                return position
            if position >= self.heard:
                self._early.setdefault(position, token)
        while self.heard in self._early:
            token = self._early.pop(self.heard)
            if self.heard == len(self.tokens) and self.last is None:
                self.add(token)
            elif self.heard >= len(self.tokens) or self.tokens[self.heard] != token:
                return self.heard
            self.heard += 1
        return None
