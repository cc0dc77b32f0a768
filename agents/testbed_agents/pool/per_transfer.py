"""A fresh connection for each transfer, closed after it. Pure.

Every transfer pays for the handshake and starts slowly, and every source port that was used
rests in TIME_WAIT for 60 s: beyond ports / 60 transfers a second they run out.
"""

from __future__ import annotations

from testbed_agents.pool.ondemand import OnDemand


class PerTransferPool(OnDemand):
    """Nothing is ever idle."""

    def _pick(self) -> int | None:
        return None

    def _keeps(self) -> bool:
        return False
