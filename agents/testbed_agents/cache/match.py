"""The longest cached prefix of a prompt, held in place until it is released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class Match(Generic[V]):
    """A lock on ``blocks`` blocks. Release it exactly once, on every path out.

    An empty match must be released too: then that nothing is open at the end of a run
    means that nothing leaked.
    """

    __slots__ = ("_release", "_values", "blocks")

    def __init__(self, values: tuple[V, ...], release: Callable[[], None]) -> None:
        self.blocks = len(values)
        """How many blocks of the prompt are cached; these are the prompt's first."""
        self._values = values
        self._release: Callable[[], None] | None = release

    @property
    def values(self) -> tuple[V, ...]:
        """The payload of each block, in order.

        Raises:
            ValueError: the lock is gone, and with it the promise that these are still cached.
        """
        if self._release is None:
            raise ValueError("a match was read after its release")
        return self._values

    @property
    def is_held(self) -> bool:
        """Whether it has not been released."""
        return self._release is not None

    def release(self) -> None:
        """Let the blocks be evicted again, unless others hold them too.

        Raises:
            ValueError: it has been released before.
        """
        if self._release is None:
            raise ValueError("a match was released twice")
        release, self._release, self._values = self._release, None, ()
        release()
