"""The parts of a profile that older profiles leave out: floor, extend-decode, copies."""

from __future__ import annotations

import pytest

from testbed.contract.agent import Hardware
from testbed_agents.hardware import copy_ns, decode_ns, prefill_ns, prefill_pass_ns

pytestmark = pytest.mark.unit

PLAIN = Hardware(
    name="test", source="made up", prefill_base_s=0.01, prefill_token_s=1e-5,
    prefill_attention_s=1e-9, decode_base_s=0.02, decode_sequence_s=1e-4, decode_context_s=1e-8,
)  # fmt: skip
FULL = PLAIN.model_copy(
    update={
        "prefill_floor_s": 0.005,
        "decode_extra_token_s": 1e-3,
        "copy_base_s": 0.012,
        "copy_byte_s": 1e-9,
    }
)


def test_a_short_prefill_takes_the_floor_and_a_long_one_does_not_notice_it() -> None:
    assert prefill_ns(FULL, 1, 0) == 15_000_000
    assert prefill_ns(FULL, 1000, 4000) == prefill_ns(PLAIN, 1000, 4000) == 24_500_000


def test_a_pass_over_two_prompts_pays_the_base_once() -> None:
    two = prefill_pass_ns(FULL, [(1000, 4000), (1000, 4000)])
    assert two == 2 * prefill_ns(FULL, 1000, 4000) - 10_000_000


def test_extra_tokens_of_a_step_take_their_time() -> None:
    # 21.3 ms as without extra tokens, and 15 x 1 ms
    assert decode_ns(FULL, 8, 50_000, extra=15) == 36_300_000
    assert decode_ns(PLAIN, 8, 50_000, extra=15) == 21_300_000


def test_a_copy_takes_a_fixed_time_and_its_bytes() -> None:
    assert copy_ns(FULL, 3_000_000) == 15_000_000
    assert copy_ns(PLAIN, 3_000_000) == 0
