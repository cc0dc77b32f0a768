"""A drawn workload is a function of its seed, keeps the block structure and the load."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.agent import Request, Shape, Window
from testbed.contract.plan import Offered
from testbed.errors import AnalysisError, PlanError
from testbed.scenario.workload import Workload
from testbed.workload import draw, read_requests, write_requests

SECOND = 1_000_000_000
LEG_BPS = 9.9e9
Part = dict[str, str | int | float]

WIDE: Part = {
    "kind": "beta",
    "alpha": 0.788,
    "beta": 0.081,
    "low": "2 %",
    "high": "99 %",
    "mean": "90 %",
}
NARROW: Part = {"kind": "uniform", "low": "85 %", "high": "95 %"}
HALF: Part = {"kind": "fixed", "share": "50 %"}
POISSON: Part = {"kind": "poisson", "rate": "80 /s"}
LONG: Part = {"kind": "fixed", "tokens": "65536 tokens"}
SHORT: Part = {"kind": "fixed", "tokens": "2 tokens"}
SHAPE = Shape(block_tokens=128, ratio=128, bytes_per_token=5031, fixed_bytes=4_560_000)
WINDOW = Window(warm_up_ns=10 * SECOND, measure_ns=60 * SECOND, drain_ns=SECOND)


def workload(
    arrivals: Part = POISSON,
    prompt: Part = LONG,
    hit: Part = WIDE,
    output: Part = SHORT,
    load: str | None = None,
    assignment: str = "round-robin",
) -> Workload:
    return Workload.model_validate(
        {
            "arrivals": arrivals,
            "input": prompt,
            "hit": hit,
            "output": output,
            "offered_load": load,
            "assignment": assignment,
        }
    )


def drawn(
    asked: Workload, seed: int = 1, window: Window = WINDOW, shape: Shape = SHAPE
) -> tuple[tuple[Request, ...], Offered]:
    return draw(asked, shape, ["p1"], ["md1"], window, seed, LEG_BPS, 2)


def hit_rates(requests: tuple[Request, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([request.hit_tokens / request.input_tokens for request in requests])


def test_the_wide_study_has_the_published_hit_rates() -> None:
    long = Window(warm_up_ns=0, measure_ns=1_000 * SECOND, drain_ns=SECOND)
    rates = hit_rates(drawn(workload(hit=WIDE), window=long)[0])
    assert rates.mean() == pytest.approx(0.90, abs=0.005)
    assert 0.70 <= (rates > 0.95).mean() <= 0.80
    assert rates.min() < 0.10
    assert rates.max() <= 0.99


def test_the_narrow_study_stays_between_its_bounds() -> None:
    rates = hit_rates(drawn(workload(hit=NARROW))[0])
    assert rates.mean() == pytest.approx(0.90, abs=0.005)
    assert rates.min() >= 0.85 - 128 / 65_536
    assert rates.max() <= 0.95


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from([WIDE, NARROW, HALF]),
    st.sampled_from(["90 %", "104 %", "110 %"]),
)
def test_the_window_offers_the_wanted_load_to_within_a_byte_a_request(
    seed: int, hit: Part, load: str
) -> None:
    requests, offered = drawn(workload(hit=hit, load=load), seed)
    inside = [request for request in requests if request.at_ns >= WINDOW.begin_ns]
    wanted = float(load.split()[0]) / 100 * 60 * 2 * LEG_BPS / 8
    payload = sum(request.wire_bytes for request in inside)
    assert abs(payload - wanted) <= len(inside)
    assert offered.payload_bytes == payload
    assert offered.load == pytest.approx(float(load.split()[0]) / 100, rel=1e-6)


def test_rescaling_uses_one_factor_and_changes_nothing_but_bytes() -> None:
    raw, before = drawn(workload())
    scaled, after = drawn(workload(load="104 %"))
    assert before.byte_scale == 1.0
    assert before.load == before.raw_load == after.raw_load
    assert len(raw) == len(scaled)
    for one, other in zip(raw, scaled, strict=True):
        assert abs(other.wire_bytes - one.wire_bytes * after.byte_scale) <= 0.5 + 1e-6
        assert one.model_copy(update={"wire_bytes": 0}) == other.model_copy(
            update={"wire_bytes": 0}
        )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([WIDE, NARROW, HALF]))
def test_requests_keep_the_block_structure(seed: int, hit: Part) -> None:
    spread: Part = {"kind": "uniform", "low": "100 tokens", "high": "70000 tokens"}
    requests, _ = drawn(workload(prompt=spread, hit=hit), seed)
    assert [request.id for request in requests] == list(range(len(requests)))
    for request in requests:
        assert request.input_tokens % 128 == 0
        assert request.hit_tokens % 128 == 0
        assert 0 <= request.hit_tokens <= request.input_tokens <= 70_000
        uncached = request.input_tokens - request.hit_tokens
        assert request.blocks * 128 == uncached
        assert request.wire_bytes == 4_560_000 + 5031 * uncached


def test_the_same_seed_gives_the_same_workload_and_another_seed_another() -> None:
    asked = workload(load="104 %")
    assert drawn(asked, seed=5) == drawn(asked, seed=5)
    assert drawn(asked, seed=5) != drawn(asked, seed=6)


def test_another_hit_distribution_does_not_move_the_arrivals() -> None:
    wide, _ = drawn(workload(hit=WIDE))
    narrow, _ = drawn(workload(hit=NARROW))
    assert [request.at_ns for request in wide] == [request.at_ns for request in narrow]


def test_answers_have_the_published_mean_and_share_of_short_ones() -> None:
    output: Part = {
        "kind": "lognormal",
        "mean": "1000 tokens",
        "median": "242 tokens",
        "high": "1000000 tokens",
    }
    long = Window(warm_up_ns=0, measure_ns=1_000 * SECOND, drain_ns=SECOND)
    lengths = np.array(
        [request.output_tokens for request in drawn(workload(output=output), window=long)[0]]
    )
    assert lengths.mean() == pytest.approx(1000, rel=0.05)
    assert (lengths < 100).mean() == pytest.approx(0.30, abs=0.01)


def test_geometric_answers_have_their_mean_and_bound() -> None:
    output: Part = {"kind": "geometric", "mean": "20 tokens", "high": "100 tokens"}
    lengths = [request.output_tokens for request in drawn(workload(output=output))[0]]
    assert np.mean(lengths) == pytest.approx(20, rel=0.06)
    assert min(lengths) >= 1
    assert max(lengths) == 100


def test_a_fixed_prompt_that_is_not_whole_blocks_is_refused() -> None:
    with pytest.raises(PlanError, match="use 896 or 1024 tokens"):
        drawn(workload(prompt={"kind": "fixed", "tokens": "1000 tokens"}))


def test_a_fully_cached_prompt_moves_only_the_fixed_bytes() -> None:
    requests, _ = drawn(workload(hit={"kind": "fixed", "share": "100 %"}))
    assert {(request.blocks, request.wire_bytes) for request in requests} == {(0, 4_560_000)}


def test_a_share_that_means_whole_blocks_loses_none_to_rounding() -> None:
    requests, _ = drawn(
        workload(
            prompt={"kind": "fixed", "tokens": "12800 tokens"},
            hit={"kind": "fixed", "share": "29 %"},
        )
    )
    assert {request.hit_tokens // 128 for request in requests} == {29}


def test_load_cannot_be_met_with_no_bytes() -> None:
    empty = Shape(block_tokens=128, ratio=128, bytes_per_token=5031)
    with pytest.raises(PlanError, match="no byte in the measuring window"):
        drawn(workload(hit={"kind": "fixed", "share": "100 %"}, load="104 %"), shape=empty)


def test_a_window_without_requests_is_refused() -> None:
    with pytest.raises(PlanError, match="no request arrives"):
        drawn(workload(arrivals={"kind": "even", "every": "1 s", "first": "200 s"}))


def test_a_closed_loop_has_no_times_and_no_load() -> None:
    requests, offered = drawn(workload(arrivals={"kind": "closed", "users": 4, "requests": 25}))
    assert len(requests) == 25
    assert {request.at_ns for request in requests} == {0}
    assert (offered.load, offered.raw_load) == (0.0, 0.0)
    assert offered.payload_bytes == sum(request.wire_bytes for request in requests)


@pytest.mark.parametrize("assignment", ["round-robin", "random"])
def test_requests_are_spread_over_all_instances(assignment: str) -> None:
    asked = workload(assignment=assignment)
    prefill, decode = ["p1", "p2", "p3"], ["md1", "md2"]
    requests, _ = draw(asked, SHAPE, prefill, decode, WINDOW, 1, LEG_BPS, 2)
    assert {request.prefill for request in requests} == set(prefill)
    assert {request.decode for request in requests} == set(decode)
    counts = Counter(request.prefill for request in requests).values()
    assert max(counts) - min(counts) <= (1 if assignment == "round-robin" else 0.1 * len(requests))


def test_there_must_be_someone_to_serve() -> None:
    with pytest.raises(PlanError, match="no P or no MD"):
        draw(workload(), SHAPE, [], ["md1"], WINDOW, 1, LEG_BPS, 2)


def test_a_workload_file_reads_back_and_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "workload.jsonl"
    requests, _ = drawn(workload())
    write_requests(path, requests)
    assert read_requests(path) == requests
    with pytest.raises(FileExistsError):
        write_requests(path, requests)


def test_a_broken_workload_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "workload.jsonl"
    write_requests(path, drawn(workload())[0][:2])
    path.write_text(path.read_text()[:-30])
    with pytest.raises(AnalysisError, match=r"workload\.jsonl:2"):
        read_requests(path)
