"""The radix cache in the situations that P and MD meet."""

from __future__ import annotations

import gc
import weakref

import pytest

from testbed.contract.agent import Span
from testbed.contract.block_key import block_keys
from testbed_agents.cache import Match, Published, RadixCache, Refusal, Reservation

BLOCK = 64


def prompt(*spans: tuple[int, int]) -> tuple[int, ...]:
    """Keys of spans given in blocks."""
    whole = tuple(Span(segment=segment, tokens=blocks * BLOCK) for segment, blocks in spans)
    return tuple(block_keys(whole, BLOCK))


def cache_of(blocks: int) -> RadixCache[str]:
    return RadixCache(blocks * 100, 100)


def put(cache: RadixCache[str], keys: tuple[int, ...], name: str = "x") -> Published:
    outcome = cache.publish(keys, [f"{name}{n}" for n in range(len(keys))])
    assert isinstance(outcome, Published)
    return outcome


def room(cache: RadixCache[str], blocks: int) -> Reservation:
    outcome = cache.reserve(blocks)
    assert isinstance(outcome, Reservation)
    return outcome


def length(cache: RadixCache[str], keys: tuple[int, ...]) -> int:
    match = cache.match(keys)
    match.release()
    return match.blocks


def test_what_is_not_published_is_not_found() -> None:
    cache = cache_of(8)
    keys = prompt((1, 4))
    reservation = room(cache, 4)
    assert length(cache, keys) == 0
    cache.publish(keys, ["a", "b", "c", "d"], reservation)
    match = cache.match(keys)
    assert match.values == ("a", "b", "c", "d")


def test_a_decode_instance_publishes_only_what_came_over_the_wire() -> None:
    cache = cache_of(8)
    keys = prompt((1, 3), (2, 2))
    put(cache, prompt((1, 3)))
    match = cache.match(keys)
    reservation = room(cache, len(keys) - match.blocks)
    assert cache.publish(keys, ["new3", "new4"], reservation) == Published(2, 0)
    match.release()
    whole = cache.match(keys)
    assert whole.values == ("x0", "x1", "x2", "new3", "new4")


def test_a_transfer_of_no_blocks_is_legal() -> None:
    cache = cache_of(4)
    put(cache, prompt((1, 4)))
    match = cache.match(prompt((1, 4)))
    reservation = room(cache, 0)
    assert cache.publish(prompt((1, 4)), [], reservation) == Published(0, 0)
    match.release()
    assert not reservation.is_open


def test_of_two_copies_the_first_stays_and_the_room_of_the_second_comes_back() -> None:
    cache = cache_of(8)
    keys = prompt((1, 3))
    one, two = room(cache, 3), room(cache, 3)
    assert cache.publish(keys, ["a0", "a1", "a2"], one) == Published(3, 0)
    assert cache.publish(keys, ["b0", "b1", "b2"], two) == Published(0, 3)
    assert cache.match(keys).values == ("a0", "a1", "a2")
    stats = cache.stats
    assert (stats.used_bytes, stats.reserved_bytes, stats.duplicate_blocks) == (300, 0, 3)


def test_of_a_prompt_known_in_part_only_the_unknown_values_are_taken() -> None:
    cache = cache_of(8)
    put(cache, prompt((1, 2)), "old")
    longer = prompt((1, 2), (2, 2))
    assert put(cache, longer, "new") == Published(2, 2)
    assert cache.match(longer).values == ("old0", "old1", "new2", "new3")


def test_the_prompt_that_was_used_longest_ago_leaves_first_and_from_its_end() -> None:
    cache = cache_of(6)
    old, young = prompt((0, 1), (1, 2)), prompt((0, 1), (2, 2))
    put(cache, old)
    put(cache, young)
    length(cache, old)
    assert put(cache, prompt((3, 2))).evicted == (young[2],)
    assert (length(cache, old), length(cache, young)) == (3, 2)


def test_the_shared_beginning_outlives_its_continuations() -> None:
    cache = cache_of(5)
    put(cache, prompt((0, 1), (1, 2)))
    put(cache, prompt((0, 1), (2, 2)))
    cache.evict(4)
    assert length(cache, prompt((0, 1), (1, 2))) == 1
    assert len(cache.evict(9)) == 1


def test_locked_blocks_stay_whatever_is_asked() -> None:
    cache = cache_of(4)
    keys = prompt((1, 4))
    put(cache, keys)
    match = cache.match(keys[:3])
    assert cache.evict(9) == (keys[3],)
    assert cache.reserve(2) is Refusal.BUSY
    assert cache.reserve(5) is Refusal.TOO_LARGE
    assert match.values == ("x0", "x1", "x2")
    match.release()
    assert room(cache, 4).evicted == (keys[2], keys[1], keys[0])


def test_two_locks_on_one_prompt_are_two() -> None:
    cache = cache_of(2)
    keys = prompt((1, 2))
    put(cache, keys)
    one, two = cache.match(keys), cache.match(keys)
    one.release()
    assert cache.evict(2) == ()
    two.release()
    assert len(cache.evict(2)) == 2


def test_a_refused_publication_changes_nothing() -> None:
    cache = cache_of(4)
    put(cache, prompt((1, 2)))
    held = cache.match(prompt((1, 2)))
    before = cache.stats.used_bytes
    assert cache.publish(prompt((2, 3)), ["a", "b", "c"]) is Refusal.BUSY
    assert cache.publish(prompt((1, 2), (2, 3)), ["a", "b", "c"]) is Refusal.TOO_LARGE
    assert cache.stats.used_bytes == before
    held.release()


def test_a_prompt_never_makes_room_for_itself_out_of_its_own_beginning() -> None:
    cache = cache_of(4)
    put(cache, prompt((1, 2)))
    put(cache, prompt((9, 2)))
    longer = prompt((1, 2), (2, 2))
    length(cache, prompt((9, 2)))
    put(cache, longer)
    assert length(cache, longer) == 4


def test_a_budget_below_one_block_caches_nothing_and_breaks_nothing() -> None:
    cache: RadixCache[str] = RadixCache(99, 100)
    assert cache.publish(prompt((1, 1)), ["a"]) is Refusal.TOO_LARGE
    assert length(cache, prompt((1, 1))) == 0
    room(cache, 0).cancel()


def test_an_evicted_payload_is_not_kept_alive() -> None:
    class Payload:
        pass

    cache: RadixCache[Payload] = RadixCache(200, 100)
    keys, payloads = prompt((1, 2)), [Payload(), Payload()]
    seen = [weakref.ref(payload) for payload in payloads]
    cache.publish(keys, payloads)
    payloads.clear()
    match: Match[Payload] = cache.match(keys)
    match.release()
    cache.evict(2)
    gc.collect()
    assert [reference() for reference in seen] == [None, None]


def test_values_cannot_be_read_after_the_release() -> None:
    cache = cache_of(2)
    put(cache, prompt((1, 2)))
    match = cache.match(prompt((1, 2)))
    match.release()
    with pytest.raises(ValueError, match="after its release"):
        _ = match.values


def test_a_second_release_is_refused_even_of_an_empty_match() -> None:
    match = cache_of(1).match(prompt((1, 1)))
    match.release()
    with pytest.raises(ValueError, match="twice"):
        match.release()


def test_a_prefix_lost_since_it_was_matched_is_noticed() -> None:
    cache = cache_of(4)
    put(cache, prompt((1, 2)))
    length(cache, prompt((1, 2)))
    cache.evict(1)
    reservation = room(cache, 2)
    with pytest.raises(ValueError, match="should be cached"):
        cache.publish(prompt((1, 2), (2, 2)), ["a", "b"], reservation)
    assert reservation.is_open


def test_a_refused_misuse_does_not_change_what_leaves_first() -> None:
    cache = cache_of(8)
    old, young = prompt((1, 2)), prompt((2, 4))
    put(cache, old)
    put(cache, young)
    with pytest.raises(ValueError, match="should be cached"):
        cache.publish((*young[:2], 3, 4, 5), ["late"], room(cache, 1))
    cache.check()
    assert cache.evict(3)[:2] == (old[1], old[0])


def test_a_reservation_of_another_cache_is_refused() -> None:
    with pytest.raises(ValueError, match="another cache"):
        cache_of(1).publish(prompt((1, 1)), ["a"], room(cache_of(1), 1))


def test_the_high_water_mark_counts_reserved_room() -> None:
    cache = cache_of(8)
    put(cache, prompt((1, 2)))
    room(cache, 5).cancel()
    assert cache.stats.high_water_bytes == 700
    assert cache.stats.budget_bytes == 800


def test_many_uses_do_not_grow_the_eviction_queue() -> None:
    cache = cache_of(4)
    put(cache, prompt((1, 2)))
    put(cache, prompt((2, 2)))
    for _ in range(1000):
        length(cache, prompt((1, 2)))
    cache.check()
    assert len(cache.evict(9)) == 4
