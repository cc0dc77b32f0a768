"""Calibration's judgement, on bursts made up here."""

from __future__ import annotations

import random

import pytest
from scipy import stats

from testbed.contract.link import Distribution, Jitter
from testbed.errors import FidelityError
from testbed.fidelity.calibrate import require
from testbed.fidelity.delay import found_words
from testbed.fidelity.frame import plain, read_mark, superframe, write_mark
from testbed.fidelity.kolmogorov import distance, limit
from testbed.fidelity.probe import Arrival, Burst
from testbed.fidelity.row import CalibrationRow
from testbed.fidelity.sequence import Comparison, compare
from testbed.shaping.netem_model import Fate

PER_FRAME, DELAY = 50, 1_000_000


def judge(fates: list[Fate], arrivals: list[tuple[int, int]]) -> Comparison:
    burst = Burst(0, 0, 0, tuple(Arrival(number, at) for number, at in arrivals))
    return compare(fates, burst, PER_FRAME, lambda fate, _burst, _exit: sorted(fate.delays_ns))


def on_time(number: int) -> tuple[int, int]:
    return number, (number + 1) * PER_FRAME + DELAY


SENT, LOST = Fate((DELAY,)), Fate(())


def test_frames_that_meet_their_fate_are_right() -> None:
    found = judge([SENT, LOST, SENT], [on_time(0), on_time(2)])
    assert found == Comparison((), 1, 0, (DELAY, DELAY), 0)


def test_a_frame_that_should_have_been_lost_is_wrong() -> None:
    assert judge([SENT, LOST], [on_time(0), on_time(1)]).wrong == (1,)


def test_a_frame_that_should_have_come_is_wrong() -> None:
    assert judge([SENT, SENT], [on_time(0)]).wrong == (1,)


def test_a_missing_duplicate_is_wrong() -> None:
    assert judge([Fate((DELAY, DELAY))], [on_time(0)]).wrong == (0,)


def test_a_corrupted_frame_is_held_to_nothing() -> None:
    assert judge([Fate((DELAY,), corrupted=True)], []).wrong == ()


def test_a_late_frame_shows_in_the_worst_error() -> None:
    number, at = on_time(0)
    assert judge([SENT], [(number, at + 700)]).worst_ns == 700


def test_overtaking_is_counted() -> None:
    assert judge([SENT, SENT, SENT], [on_time(0), on_time(2), on_time(1)]).overtaken == 1


@pytest.mark.parametrize("shape", [Distribution.NORMAL, Distribution.UNIFORM])
def test_the_distance_is_scipys(shape: Distribution) -> None:
    generator = random.Random(4)
    normal = shape is Distribution.NORMAL
    sample = [
        generator.gauss(1e6, 1e4) if normal else generator.uniform(9.9e5, 1.01e6)
        for _ in range(500)
    ]
    jitter = Jitter(spread_ns=10_000, distribution=shape)
    wanted = stats.norm(1e6, 1e4) if normal else stats.uniform(9.9e5, 2e4)
    expected = stats.kstest(sample, wanted.cdf).statistic
    assert distance(sample, 1_000_000, jitter) == pytest.approx(expected, abs=1e-9)


def test_a_wrong_spread_is_beyond_the_limit_and_a_right_one_is_not() -> None:
    generator = random.Random(5)
    sample = [generator.gauss(1e6, 1e4) for _ in range(5_000)]
    assert distance(sample, 1_000_000, Jitter(spread_ns=10_000)) < limit(5_000)
    assert distance(sample, 1_000_000, Jitter(spread_ns=12_000)) > limit(5_000)


def test_nothing_measured_is_as_far_as_can_be() -> None:
    assert distance([], 1, Jitter(spread_ns=1)) == 1.0


def test_a_damaged_mark_is_not_taken_for_another_number() -> None:
    template = plain(64)
    frame = bytearray(template.data)
    write_mark(frame, template.mark_at, 3, 77)
    assert read_mark(bytes(frame), template.mark_at) == (3, 77)
    frame[template.mark_at + 12] ^= 1
    assert read_mark(bytes(frame), template.mark_at) is None


def test_a_superframe_counts_the_headers_of_all_its_segments() -> None:
    template = superframe(65_536, 9_000)
    assert len(template.data) - template.prefix == 65_535
    assert template.wire_bytes == 65_535 + 7 * 54


def test_one_row_that_is_not_ok_fails_the_whole() -> None:
    good = CalibrationRow(link="wan1", direction="forward", quantity="rate", requested="", ok=True)
    require((good,))
    with pytest.raises(FidelityError, match="wan1 forward: delay"):
        require((good, good.model_copy(update={"quantity": "delay", "ok": False})))


def test_where_every_probe_is_lost_no_deviation_is_told() -> None:
    assert found_words(0, 0, 5, 0) == "every probe was lost, 5 of 5"
    assert found_words(-3, 2, 5, 0) == "off by at most -3 ns in 2 frames"
    assert found_words(0, 0, 5, 5) == "every probe was lost, 5 of 5, 5 frames too many or too few"
