"""The offline model of netem's generator."""

from __future__ import annotations

import pytest

from testbed.contract.link import Distribution
from testbed.errors import PlanError
from testbed.shaping.compile import share_to_u32
from testbed.shaping.distribution import table_of
from testbed.shaping.netem_model import NetemModel, Tausworthe
from testbed.shaping.qdisc import GeModel, GiModel, Netem


def lost(spec: Netem, packets: int) -> list[int]:
    fates = NetemModel(spec).predict(packets)
    return [number + 1 for number, fate in enumerate(fates) if fate.lost]


def test_the_kernel_patchs_own_example_loses_5_12_and_24() -> None:
    spec = Netem(limit=1, loss=share_to_u32(0.1), seed=42_424_242)
    assert lost(spec, 25) == [5, 12, 24]


def test_another_seed_loses_others() -> None:
    spec = Netem(limit=1, loss=share_to_u32(0.1), seed=42_424_243)
    assert lost(spec, 25) != [5, 12, 24]


def test_small_seeds_respect_the_floors_of_the_generator() -> None:
    assert len({Tausworthe(seed).draw() for seed in range(64)}) == 64


def test_no_loss_draws_nothing_and_full_loss_loses_all() -> None:
    assert lost(Netem(limit=1, seed=1), 100) == []
    assert len(lost(Netem(limit=1, loss=share_to_u32(1.0), seed=1), 100)) == 100


def test_gilbert_elliott_has_its_stationary_loss() -> None:
    model = GeModel(
        p=share_to_u32(0.02), r=share_to_u32(0.2), h=share_to_u32(0.0), k1=share_to_u32(0.0)
    )
    count = len(lost(Netem(limit=1, loss_model=model, seed=9), 50_000))
    assert count / 50_000 == pytest.approx(0.02 / 0.22, rel=0.1)


def test_four_states_lose_in_bursts() -> None:
    model = GiModel(
        p13=share_to_u32(0.01),
        p31=share_to_u32(0.25),
        p32=0,
        p14=0,
        p23=share_to_u32(1.0),
    )
    numbers = lost(Netem(limit=1, loss_model=model, seed=4), 50_000)
    followed = sum(number + 1 in set(numbers) for number in numbers)
    assert followed / len(numbers) == pytest.approx(0.75, abs=0.05)


def test_a_duplicate_draws_its_own_loss_and_delay_before_the_original() -> None:
    spec = Netem(
        limit=1, latency_ns=1_000_000, jitter_ns=1_000, duplicate=share_to_u32(1.0), seed=3
    )
    random = Tausworthe(3)
    random.draw()  # duplication
    delays = tuple(random.draw() % 2_000 + 999_000 for _ in range(2))
    assert NetemModel(spec).next_packet().delays_ns == delays


@pytest.mark.parametrize("shape", list(Distribution))
def test_delays_have_the_wanted_mean_and_spread(shape: Distribution) -> None:
    spec = Netem(limit=1, latency_ns=10_000_000, jitter_ns=1_000_000, table=table_of(shape), seed=8)
    delays = [fate.delays_ns[0] for fate in NetemModel(spec).predict(20_000)]
    mean = sum(delays) / len(delays)
    deviation = (sum((d - mean) ** 2 for d in delays) / len(delays)) ** 0.5
    assert mean == pytest.approx(10_000_000, rel=0.003)
    expected = 1_000_000 / 3**0.5 if shape is Distribution.UNIFORM else 1_000_000
    assert deviation == pytest.approx(expected, rel=0.03)


def test_division_truncates_towards_zero_as_in_c() -> None:
    table = (-8192, -1, 1, 8192)
    spec = Netem(limit=1, latency_ns=0, jitter_ns=4097, table=table, seed=5)
    seen = {fate.delays_ns[0] for fate in NetemModel(spec).predict(200)}
    assert seen == {-4097, -1, 1, 4097}


def test_what_the_kernel_does_not_seed_is_not_predicted() -> None:
    with pytest.raises(PlanError, match="not seeded"):
        NetemModel(Netem(limit=1, loss=5, loss_correlation=1))
