"""The radix cache against a dictionary of prefixes, under random interleavings."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from testbed_agents.cache import Match, Published, RadixCache, Refusal, Reservation
from tests.fakes.prefix_model import PrefixModel, Prompt, row

BLOCK_BYTES = 10
PROMPTS = st.lists(st.integers(0, 2), max_size=7).map(tuple)
PICK = st.integers(0, 1000)


class Interleavings(RuleBasedStateMachine):
    """Every answer and every count must be the model's."""

    def __init__(self) -> None:
        super().__init__()
        self.serial = 0
        self.matches: list[tuple[Prompt, Match[int]]] = []
        self.rooms: list[Reservation] = []
        self.hits = self.asked = 0

    @initialize(capacity=st.integers(0, 14), spare=st.integers(0, BLOCK_BYTES - 1))
    def make(self, capacity: int, spare: int) -> None:
        self.model = PrefixModel(capacity)
        self.cache: RadixCache[int] = RadixCache(capacity * BLOCK_BYTES + spare, BLOCK_BYTES)

    def fresh(self, count: int) -> list[int]:
        self.serial += count
        return list(range(self.serial - count, self.serial))

    @rule(prompt=PROMPTS)
    def match(self, prompt: Prompt) -> None:
        match = self.cache.match(row(prompt))
        prefix = self.model.longest(prompt)
        assert match.blocks == len(prefix)
        assert match.values == self.model.values_of(prefix)
        self.model.held.append(prefix)
        self.model.use(prefix)
        self.matches.append((prefix, match))
        self.hits += len(prefix)
        self.asked += len(prompt)

    @precondition(lambda self: self.matches)
    @rule(pick=PICK)
    def release(self, pick: int) -> None:
        prefix, match = self.matches.pop(pick % len(self.matches))
        match.release()
        self.model.held.remove(prefix)
        self.model.use(prefix)
        self.refuses(match.release)

    @rule(blocks=st.integers(0, 16))
    def reserve(self, blocks: int) -> None:
        room = self.cache.reserve(blocks)
        if blocks > self.model.attainable:
            too_large = blocks > self.model.capacity
            assert room is (Refusal.TOO_LARGE if too_large else Refusal.BUSY)
            return
        assert isinstance(room, Reservation)
        assert room.evicted == self.model.make_room(blocks)
        self.model.reserved += blocks
        self.rooms.append(room)

    @precondition(lambda self: self.rooms)
    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        room = self.rooms.pop(pick % len(self.rooms))
        room.cancel()
        self.model.reserved -= room.blocks
        self.refuses(room.cancel)

    @rule(prompt=PROMPTS, skip=st.integers(0, 7))
    def publish(self, prompt: Prompt, skip: int) -> None:
        cached = self.model.longest(prompt)
        before = min(skip, len(cached))
        values = self.fresh(len(prompt) - before)
        outcome = self.cache.publish(row(prompt), values)
        new = len(prompt) - len(cached)
        self.model.held.append(cached)
        fits = new <= self.model.attainable
        evicted = self.model.make_room(new) if fits else ()
        self.model.held.remove(cached)
        if fits:
            assert outcome == Published(new, len(values) - new, evicted)
            self.keep(prompt, len(cached), values)
        else:
            too_large = len(prompt) > self.model.capacity
            assert outcome is (Refusal.TOO_LARGE if too_large else Refusal.BUSY)
            self.model.use(cached)

    @precondition(lambda self: self.rooms)
    @rule(prompt=PROMPTS, skip=st.integers(0, 7), pick=PICK)
    def publish_into_a_reservation(self, prompt: Prompt, skip: int, pick: int) -> None:
        cached = self.model.longest(prompt)
        before = min(skip, len(prompt))
        values = self.fresh(len(prompt) - before)
        room = self.rooms[pick % len(self.rooms)]
        new = len(prompt) - len(cached)
        if before > len(cached) or new > room.blocks:
            self.refuses(lambda: self.cache.publish(row(prompt), values, room))
            assert room.is_open
            return
        assert self.cache.publish(row(prompt), values, room) == Published(new, len(values) - new)
        self.rooms.remove(room)
        self.model.reserved -= room.blocks
        self.keep(prompt, len(cached), values)
        self.refuses(lambda: self.cache.publish(row(prompt), values, room))

    def keep(self, prompt: Prompt, cached: int, values: list[int]) -> None:
        before = len(prompt) - len(values)
        for n in range(cached, len(prompt)):
            self.model.values[prompt[: n + 1]] = values[n - before]
        self.model.use(prompt)

    @rule(blocks=st.integers(0, 5))
    def evict(self, blocks: int) -> None:
        assert self.cache.evict(blocks) == self.model.evict(blocks)

    def refuses(self, misuse: object) -> None:
        before = self.cache.stats
        assert callable(misuse)
        try:
            misuse()
        except ValueError:
            assert self.cache.stats == before
            return
        raise AssertionError("misuse was let through")

    @invariant()
    def all_counts_are_the_models(self) -> None:
        self.cache.check()
        stats = self.cache.stats
        blocks = (stats.used_bytes, stats.locked_bytes, stats.reserved_bytes)
        model = (len(self.model.values), self.model.locked, self.model.reserved)
        assert blocks == tuple(count * BLOCK_BYTES for count in model)
        assert stats.used_bytes + stats.reserved_bytes <= stats.high_water_bytes
        assert stats.high_water_bytes <= stats.budget_bytes
        assert (stats.open_matches, stats.open_reservations) == (
            len(self.matches), len(self.rooms),
        )  # fmt: skip
        assert (stats.asked_blocks, stats.hit_blocks) == (self.asked, self.hits)
        assert stats.published_blocks - stats.evicted_blocks == len(self.model.values)

    @invariant()
    def what_is_held_is_still_there(self) -> None:
        for prefix, match in self.matches:
            assert match.values == self.model.values_of(prefix)
            assert self.model.longest(prefix) == prefix

    def teardown(self) -> None:
        if not hasattr(self, "cache"):
            return
        for prefix in list(self.model.values):
            self.match((*prefix, 7))
        while self.matches:
            self.release(-1)
        while self.rooms:
            self.cancel(0)
        everything = len(self.model.values)
        gone = self.cache.evict(everything + 1)
        assert gone == self.model.evict(everything + 1)
        assert len(gone) == everything
        assert self.cache.stats.used_bytes == 0
        self.cache.check()


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
