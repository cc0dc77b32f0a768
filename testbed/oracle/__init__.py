"""What an ideal link would have done with the same arrivals and sizes.

A yardstick to hold the emulated run against, pure and exact; never a replacement for it.
"""

from testbed.oracle.prefill import after_prefill, prefill_s
from testbed.oracle.record import read_outcomes, write_outcomes
from testbed.oracle.sharing import IdealLink, Outcome, Transfer, share

__all__ = [
    "IdealLink",
    "Outcome",
    "Transfer",
    "after_prefill",
    "prefill_s",
    "read_outcomes",
    "share",
    "write_outcomes",
]
