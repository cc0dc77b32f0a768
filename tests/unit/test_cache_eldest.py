"""The queue of eviction candidates finds the eldest and stays small."""

from __future__ import annotations

from testbed_agents.cache.eldest import Eldest


def test_stale_entries_are_dropped_and_no_candidate_with_them() -> None:
    latest: dict[str, int] = {}
    eldest: Eldest[str] = Eldest(lambda name, stamp: latest.get(name) == stamp)
    asked = 0
    for stamp in range(5000):
        latest[f"n{stamp % 40}"] = stamp
        eldest.push(stamp, f"n{stamp % 40}")
        asked = max(asked, len(eldest))
    assert asked <= 64 + 2 * 40 + 1
    order: list[str] = []
    while (first := eldest.first()) is not None:
        order.append(first)
        del latest[first]
    assert order == [f"n{n % 40}" for n in range(4960, 5000)]
    assert len(eldest) == 0


def test_candidates_pushed_long_ago_survive_the_clearing() -> None:
    latest = {f"n{n}": n for n in range(40)}
    eldest: Eldest[str] = Eldest(lambda name, stamp: latest.get(name) == stamp)
    for name, stamp in latest.items():
        eldest.push(stamp, name)
    for stamp in range(40, 1000):
        eldest.push(stamp, "gone")
    assert len(eldest) < 200
    assert eldest.candidates() == {id(name) for name in latest}
    assert eldest.first() == "n0"
