"""Sampling: noise is a function of (seed, request, position) and truly Gumbel."""

from __future__ import annotations

import math

import torch

from testbed_agents.model.sampling import choose, gumbel_rows


def test_noise_is_pure_and_its_own_per_key() -> None:
    keys = [(request, position) for request in range(4) for position in range(4)]
    noise = gumbel_rows(3, keys, 512)
    assert torch.equal(noise[5], gumbel_rows(3, [keys[5]], 512)[0])
    assert len({tuple(row.tolist()) for row in noise}) == len(keys)
    assert not torch.equal(noise, gumbel_rows(4, keys, 512))


def test_noise_has_the_moments_of_gumbel() -> None:
    noise = gumbel_rows(0, [(0, position) for position in range(400)], 512)
    assert math.isclose(noise.mean().item(), 0.5772, abs_tol=0.01)
    assert math.isclose(noise.var().item(), math.pi**2 / 6, rel_tol=0.02)
    assert torch.isfinite(noise).all()


def test_choices_follow_the_softmax() -> None:
    logits = torch.log(torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64))
    scores = logits + gumbel_rows(1, [(7, position) for position in range(20_000)], 3)
    tokens = torch.tensor([choice.token for choice in choose(scores)])
    shares = torch.bincount(tokens, minlength=3) / 20_000
    assert torch.allclose(shares, torch.tensor([0.6, 0.3, 0.1]), atol=0.015)


def test_the_gap_is_the_lead_over_the_runner_up() -> None:
    (choice,) = choose(torch.tensor([[1.0, 4.5, 4.0]]))
    assert (choice.token, choice.gap) == (1, 0.5)
