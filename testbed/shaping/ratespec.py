"""How the kernel keeps a rate: struct tc_ratespec and its reciprocal division.

HTB, TBF and police turn a length into a time with ``(len * mult) >> shift``; the
product of two roundings is up to one nanosecond short of the exact quotient that
netem computes (net/sched/sch_generic.c, psched_ratecfg_precompute__).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

LAYOUT = struct.Struct("=BBHhHI")
"""cell_log, linklayer, overhead, cell_align, mpu, rate of struct tc_ratespec."""
ETHERNET = 1
"""TC_LINKLAYER_ETHERNET: the kernel then never looks at a rate table."""
NS = 1_000_000_000
TICK_NS = 64
"""PSCHED_TICKS2NS(1): the unit of bursts and of 32-bit times."""


def pack(rate: int, cell_log: int = 0) -> bytes:
    """tc_ratespec of a rate in byte/s; a rate of 2**32 or more saturates (RATE64 carries it)."""
    return LAYOUT.pack(cell_log, ETHERNET, 0, 0, 0, min(rate, 2**32 - 1))


def unpack(data: bytes, offset: int = 0) -> int:
    """The 32-bit rate of a tc_ratespec in byte/s."""
    rate: int = LAYOUT.unpack_from(data, offset)[5]
    return rate


@dataclass(frozen=True, slots=True)
class Reciprocal:
    """The kernel's multiplier and shift for one rate."""

    mult: int
    shift: int

    @classmethod
    def of(cls, rate: int) -> Reciprocal:
        """Precompute for a rate in byte/s, as the kernel does."""
        factor, shift = NS, 0
        while True:
            mult = (factor // rate) & 0xFFFFFFFF
            if mult & (1 << 31) or factor & (1 << 63):
                return cls(mult, shift)
            factor <<= 1
            shift += 1

    def time_ns(self, length: int) -> int:
        """Time of ``length`` bytes in ns, with the kernel's rounding."""
        return (length * self.mult) >> self.shift


def exact_ns(length: int, rate: int) -> int:
    """Time of ``length`` bytes as netem computes it: the floor of the exact quotient."""
    return length * NS // rate
