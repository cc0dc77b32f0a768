"""A descriptor that is kept for the moment at which no other is left.

A connection that cannot be accepted stays in the kernel's queue, and the listener stays
readable: whoever waits for it would turn for ever, and a virtual clock would stand still. So the
spare one is given up, the connection is accepted with it, reset, and the spare one taken again:
its sender knows at once that it is refused.
"""

from __future__ import annotations

import errno
import os
import socket

from testbed_agents.transport.connection import reset

_NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})


class SpareDescriptor:
    """One open file that nobody reads."""

    def __init__(self) -> None:
        self._fd: int | None = None

    def take(self) -> None:
        """Open it. Raises OSError where not even one is left."""
        if self._fd is None:
            self._fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def give_back(self) -> None:
        """Close it. Once is enough."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def turn_away(self, listener: socket.socket, error: OSError) -> bool:
        """Whether ``error`` says that no descriptor is left; the first that waits is then reset."""
        if error.errno not in _NONE_LEFT or self._fd is None:
            return False
        self.give_back()
        try:
            connection, _ = listener.accept()
            reset(connection)
        except (BlockingIOError, ConnectionAbortedError):
            pass  # it went by itself
        finally:
            self.take()
        return True
