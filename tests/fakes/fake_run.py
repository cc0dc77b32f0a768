"""What a fake run pretends to be."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000_000
LEG_PAYLOAD_BPS = 9.9e9
RTT_NS = 20_000_000
SAMPLE_NS = SECOND // 2
INPUT_TOKENS = 65_536
BLOCK = 128


@dataclass(frozen=True, slots=True)
class FakeRun:
    """What to simulate: times in seconds, rate in requests per second."""

    scenario: str = "pool-wide-skewed"
    wide: bool = True
    seed: int = 1
    load: float = 1.04
    rate: float = 80.0
    warm_up_s: float = 2.0
    measure_s: float = 10.0
    drain_s: float = 60.0
    pool: int = 160
    output_tokens: int = 2
    model: str = "nano"
    fail: frozenset[int] = frozenset()
    """Requests that the client reports failed instead of answered."""
