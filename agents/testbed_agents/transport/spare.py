"""A descriptor that is kept for the moment at which no other is left.

A connection that cannot be accepted stays in the kernel's queue, and the listener stays
readable: whoever waits for it would turn for ever, and a virtual clock would stand still. So the
spare one is given up, the connection is accepted with it, reset, and the spare one taken again:
its sender knows at once that it is refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket

from testbed_agents.transport.connection import reset

_NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})


def is_none_left(error: OSError) -> bool:
    """Whether an error says that the process or the machine may open no more files."""
    return error.errno in _NONE_LEFT


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

    def turn_away(self, listener: socket.socket) -> bool:
        """Reset all that wait to be accepted; False where even the spare one does not help.

        A limit may lie below its number. And accept(2) asks for a descriptor before it looks
        whether anybody waits: so only without the spare one is it seen that nobody does.
        """
        self.give_back()
        helped = True
        try:
            while True:
                connection, _ = listener.accept()
                reset(connection)
        except ConnectionAbortedError:
            pass  # it went by itself; another may wait, and makes the listener readable again
        except OSError as error:
            helped = not is_none_left(error)
            if helped and not isinstance(error, BlockingIOError):
                raise
        finally:
            with contextlib.suppress(OSError):
                self.take()
        return helped
