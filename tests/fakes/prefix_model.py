"""A prefix cache as plain as can be: one dictionary entry a prefix, everything by search."""

from __future__ import annotations

Prompt = tuple[int, ...]
"""A letter a block; the key of a block is ``row(prompt)[i]``."""


def row(prompt: Prompt) -> tuple[int, ...]:
    """Chained keys without a hash: each key spells its whole prefix in base 8."""
    keys: list[int] = []
    key = 0
    for letter in prompt:
        key = key * 8 + 1 + letter
        keys.append(key)
    return tuple(keys)


class PrefixModel:
    """What ``RadixCache`` promises, in blocks; values are told apart by number."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.values: dict[Prompt, int] = {}
        self.used_at: dict[Prompt, int] = {}
        self.held: list[Prompt] = []
        self.reserved = 0
        self.now = 0

    def longest(self, prompt: Prompt) -> Prompt:
        """The longest cached prefix, by trying all from the longest on."""
        for length in range(len(prompt), 0, -1):
            if prompt[:length] in self.values:
                return prompt[:length]
        return ()

    def use(self, prompt: Prompt) -> None:
        """All blocks of a cached prompt were used now."""
        self.now += 1
        for length in range(1, len(prompt) + 1):
            self.used_at[prompt[:length]] = self.now

    def values_of(self, prompt: Prompt) -> tuple[int, ...]:
        """The payload of each block of a cached prompt."""
        return tuple(self.values[prompt[: n + 1]] for n in range(len(prompt)))

    def is_locked(self, prefix: Prompt) -> bool:
        """Whether any held prompt begins with it."""
        return any(held[: len(prefix)] == prefix for held in self.held)

    @property
    def locked(self) -> int:
        """Blocks that nobody may evict."""
        return sum(self.is_locked(prefix) for prefix in self.values)

    @property
    def attainable(self) -> int:
        """Blocks that could be reserved."""
        return self.capacity - self.locked - self.reserved

    def evict(self, blocks: int) -> tuple[int, ...]:
        """Keys of the blocks that leave, one after the other."""
        gone: list[int] = []
        while len(gone) < blocks:
            inner = {prefix[:-1] for prefix in self.values}
            ends = [p for p in self.values if p not in inner and not self.is_locked(p)]
            if not ends:
                break
            eldest = min(ends, key=self.used_at.__getitem__)
            del self.values[eldest], self.used_at[eldest]
            gone.append(row(eldest)[-1])
        return tuple(gone)

    def make_room(self, blocks: int) -> tuple[int, ...]:
        """Evict what does not fit beside ``blocks`` more."""
        return self.evict(blocks - (self.capacity - len(self.values) - self.reserved))
