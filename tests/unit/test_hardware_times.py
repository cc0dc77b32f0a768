"""Profile formulas: exact where they can be counted by hand, and monotone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.agent import Hardware
from testbed_agents.hardware import decode_ns, prefill_ns

HARDWARE = Hardware(
    name="test", source="made up", prefill_base_s=0.01, prefill_token_s=1e-5,
    prefill_attention_s=1e-9, decode_base_s=0.02, decode_sequence_s=1e-4, decode_context_s=1e-8,
)  # fmt: skip
TOKENS = st.integers(0, 100_000)


def test_prefill_counts_base_tokens_and_attention() -> None:
    # 10 ms + 1000 x 10 us + 1000 x (4000 + 500) x 1 ns = 24.5 ms
    assert prefill_ns(HARDWARE, 1000, 4000) == 24_500_000


def test_decode_counts_base_sequences_and_context() -> None:
    # 20 ms + 8 x 100 us + 50,000 x 10 ns = 21.3 ms
    assert decode_ns(HARDWARE, 8, 50_000) == 21_300_000


@given(uncached=TOKENS, context=TOKENS, more=TOKENS)
def test_more_work_never_takes_less_time(uncached: int, context: int, more: int) -> None:
    base = prefill_ns(HARDWARE, uncached, context)
    assert prefill_ns(HARDWARE, uncached + more, context) >= base
    assert prefill_ns(HARDWARE, uncached, context + more) >= base
    assert decode_ns(HARDWARE, 1 + more, context) >= decode_ns(HARDWARE, 1, context)
