"""What a batch may hold: sequences, bytes of KV, tokens a step for each."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.agent import Hardware, Shape
from testbed.contract.serving import DeviceLimits, Reserve


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one decode instance."""

    max_batch: int
    kv_bytes: int
    """Device memory for KV; 0 is no limit."""
    bytes_per_token: int
    fixed_bytes: int
    extend_width: int = 0
    """Most tokens a step feeds to one sequence; 0 is no limit."""
    headroom_tokens: int = 0
    """Room that admission leaves for each running sequence to grow."""
    whole: bool = False
    """Admit a sequence with room for all that it can ever have: nobody is preempted."""

    def __post_init__(self) -> None:
        if self.max_batch < 1:
            raise ValueError("a batch holds at least one sequence")
        smallest = min(
            self.kv_bytes, self.bytes_per_token, self.fixed_bytes, self.extend_width,
            self.headroom_tokens,
        )  # fmt: skip
        if smallest < 0:
            raise ValueError("a limit of a batch cannot be below zero")

    def size(self, tokens: int) -> int:
        """Bytes that a sequence with ``tokens`` tokens occupies."""
        return self.fixed_bytes + tokens * self.bytes_per_token

    def holds(self, size: int) -> bool:
        """Whether ``size`` bytes of KV fit."""
        return not self.kv_bytes or size <= self.kv_bytes


def limits_of(hardware: Hardware, shape: Shape, chosen: DeviceLimits, kv_bytes: int = 0) -> Limits:
    """The limits of a hardware profile for one KV shape; ``kv_bytes`` goes before the profile's."""
    return Limits(
        max_batch=hardware.max_batch,
        kv_bytes=kv_bytes or hardware.kv_memory_bytes,
        bytes_per_token=shape.bytes_per_token,
        fixed_bytes=shape.fixed_bytes,
        extend_width=hardware.extend_width,
        headroom_tokens=chosen.headroom_tokens,
        whole=chosen.reserve is Reserve.WHOLE,
    )
