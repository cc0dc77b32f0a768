"""Quantities with units: the only way a rate, a time or a size enters the testbed.

A quantity is a whole number of a fixed step (1 ns, 1 bit/s, 1 byte, …), parsed
exactly from text such as ``"10 Gbit/s"``. Nothing here rounds: what the step
cannot hold is refused, never changed in silence. No other room is imported
except the errors.
"""

from testbed.units.quantity import Quantity
from testbed.units.share import Load, Share
from testbed.units.size import Size, Tokens
from testbed.units.time import Duration, Frequency, Rate
from testbed.units.written import Written

__all__ = [
    "Duration",
    "Frequency",
    "Load",
    "Quantity",
    "Rate",
    "Share",
    "Size",
    "Tokens",
    "Written",
]
