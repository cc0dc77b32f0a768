"""How many files and sockets this process may have open, and how many of them it has."""

from __future__ import annotations

import contextlib
import os
import resource

from testbed.errors import AgentError

ENOUGH = 65_536
"""A pool of every size to every peer fits, and the kernel's own bound (fs.nr_open) is far away."""
_OPEN = "/proc/self/fd"


def raise_descriptors() -> None:
    """Raises the soft limit to ``ENOUGH``, or as far as the hard one allows; never lowers it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    bounded = hard != resource.RLIM_INFINITY and hard < ENOUGH
    if bounded:  # root may raise it as well
        with contextlib.suppress(ValueError, PermissionError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (ENOUGH, ENOUGH))
            return
    if soft != resource.RLIM_INFINITY and soft < ENOUGH:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if bounded else ENOUGH, hard))


class DescriptorLimit:
    """Lowers the soft limit (getrlimit(2)), and raises it to where it was."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._before: tuple[int, int] | None = None

    def leave(self, left: int | None) -> None:
        """``left`` more than are open fit; None is as before.

        Raises:
            AgentError: the kernel kept another limit.
        """
        if left is None:
            if self._before is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, self._before)
            self._before = None
            return
        self._before = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = limit_for(_open_descriptors(), left)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, self._before[1]))
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] != wanted:
            raise AgentError("limit descriptors", self._node, "the kernel kept another limit")


def limit_for(taken: frozenset[int], left: int) -> int:
    """The limit on descriptor numbers below which ``left`` are free; those above stay open."""
    number = 0
    while True:
        if number not in taken:
            if left == 0:
                return number
            left -= 1
        number += 1


def _open_descriptors() -> frozenset[int]:
    """Without the one that listing them takes."""
    found: set[int] = set()
    for number in map(int, os.listdir(_OPEN)):
        with contextlib.suppress(OSError):
            os.fstat(number)
            found.add(number)
    return frozenset(found)
