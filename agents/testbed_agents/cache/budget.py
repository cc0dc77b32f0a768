"""The budget of a cache: blocks used, reserved and locked, never more than fit."""

from __future__ import annotations


class Budget:
    """Counts whole blocks. A budget below one block is legal and caches nothing.

    Raises:
        ValueError: sizes that no cache can have, or a count that would leave its bounds
            (a mistake in the cache, never of the load).
    """

    def __init__(self, budget_bytes: int, block_bytes: int) -> None:
        if budget_bytes < 0 or block_bytes < 1:
            raise ValueError("a budget needs budget_bytes >= 0 and block_bytes >= 1")
        self.block_bytes = block_bytes
        self.capacity = budget_bytes // block_bytes
        self.used = 0
        """Published blocks, locked ones included."""
        self.reserved = 0
        self.locked = 0
        self.high_water = 0
        """Most that were used and reserved together."""

    @property
    def free(self) -> int:
        """Blocks that can be reserved without evicting any."""
        return self.capacity - self.used - self.reserved

    @property
    def attainable(self) -> int:
        """Blocks that can be reserved once all that is not locked is evicted."""
        return self.capacity - self.locked - self.reserved

    def reserve(self, blocks: int) -> None:
        """Set free blocks aside."""
        self._change(reserved=blocks)
        self.high_water = max(self.high_water, self.used + self.reserved)

    def settle(self, blocks: int, published: int) -> None:
        """End a reservation: ``published`` of its blocks are used, the others free again."""
        self._change(used=published, reserved=-blocks)

    def evict(self, blocks: int) -> None:
        """Used blocks that nobody had locked are free."""
        self._change(used=-blocks)

    def lock(self, blocks: int) -> None:
        """Used blocks come under their first lock."""
        self._change(locked=blocks)

    def unlock(self, blocks: int) -> None:
        """Blocks lose their last lock."""
        self._change(locked=-blocks)

    def _change(self, used: int = 0, reserved: int = 0, locked: int = 0) -> None:
        after = self.used + used, self.reserved + reserved, self.locked + locked
        if min(after) < 0 or after[2] > after[0] or after[0] + after[1] > self.capacity:
            raise ValueError(
                f"of {self.capacity} blocks {after[0]} would be used, {after[1]} reserved, "
                f"{after[2]} locked"
            )
        self.used, self.reserved, self.locked = after
