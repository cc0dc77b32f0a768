"""An event loop whose timers are exact, for clocks that may be virtual.

Python's own epoll selector rounds every timeout up to a millisecond, and the kernel
adds a slack of 0.1 % of the timeout to ``epoll_wait``. Both would falsify a virtual
timeline, so waits here end by a ``timerfd`` armed with an absolute monotonic time.
In the lab guest reading a clock costs 256 ns of virtual time and a system call of wall
time, so the loop reads it once per turn instead of three times, and a turn that has work
already looks for more only now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import select
import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

_Arguments = TypeVarTuple("_Arguments")

_NS = 1_000_000_000
_TFD_ABSTIME = 1
_SAME_NS = 2_000
"""A timer at most this far before or after the wanted time is left as it is."""
_TURNS_PER_LOOK = 16
"""Turns in a row that may run what is ready already before descriptors are looked at."""


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


class ExactTimer:
    """A ``timerfd`` on CLOCK_MONOTONIC. Raises OSError where the kernel refuses."""

    def __init__(self) -> None:
        flags = os.O_NONBLOCK | os.O_CLOEXEC  # TFD_NONBLOCK, TFD_CLOEXEC
        self.fd = _checked(_LIBC.timerfd_create(time.CLOCK_MONOTONIC, flags), "timerfd_create")

    def arm(self, at_ns: int) -> None:
        """Become readable at ``at_ns`` of CLOCK_MONOTONIC. Clears readability."""
        spec = _TimerSpec(_TimeSpec(0, 0), _TimeSpec(at_ns // _NS, at_ns % _NS))
        result = _LIBC.timerfd_settime(self.fd, _TFD_ABSTIME, ctypes.byref(spec), None)
        _checked(result, "timerfd_settime")

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)


class _Registered(Mapping["FileDescriptorLike", selectors.SelectorKey]):
    """What is registered, by descriptor or by object; raises KeyError for the rest."""

    def __init__(self, keys: dict[int, selectors.SelectorKey]) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._keys[_descriptor(fileobj, self._keys)]

    def __iter__(self) -> Iterator[FileDescriptorLike]:
        return iter(tuple(self._keys))


def _descriptor(
    fileobj: FileDescriptorLike, keys: Mapping[int, selectors.SelectorKey] | None = None
) -> int:
    fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
    if fd < 0 and keys is not None:  # already closed: find it by identity
        for key in keys.values():
            if key.fileobj is fileobj:
                return key.fd
    if fd < 0:
        raise ValueError(f"not an open descriptor: {fileobj!r}")
    return fd


class PreciseSelector(selectors.BaseSelector):
    """epoll whose timeouts are exact: they are an ``ExactTimer`` among the descriptors.

    Re-arming costs a system call, so an earlier timer than wanted is left standing:
    it wakes the loop once too often and is then set anew. One that has fired is not cleared:
    it is watched edge-triggered.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._timer = ExactTimer()
        self._epoll.register(self._timer.fd, select.EPOLLIN | select.EPOLLET)
        self._armed_ns = 0
        self._unlooked = _TURNS_PER_LOOK  # the first call looks
        self._time_ns: int | None = None
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._map = _Registered(self._keys)

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> selectors.SelectorKey:
        """Watch ``fileobj``; raises KeyError when it is watched already."""
        fd = _descriptor(fileobj)
        if fd in self._keys:
            raise KeyError(f"{fileobj!r} is already registered")
        self._epoll.register(fd, _mask(events))
        key = selectors.SelectorKey(fileobj, fd, events, data)
        self._keys[fd] = key
        return key

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        """Stop watching; a descriptor closed before is forgotten without complaint."""
        key = self._keys.pop(_descriptor(fileobj, self._keys))
        with contextlib.suppress(OSError):  # the kernel dropped it when it was closed
            self._epoll.unregister(key.fd)
        return key

    def modify(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> selectors.SelectorKey:
        """Watch for other events or carry other data."""
        key = self._keys[_descriptor(fileobj, self._keys)]
        if events != key.events:
            self._epoll.modify(key.fd, _mask(events))
        key = key._replace(events=events, data=data)
        self._keys[key.fd] = key
        return key

    def time_ns(self) -> int:
        """Monotonic nanoseconds, read at most once between two waits."""
        if self._time_ns is None:
            self._time_ns = time.monotonic_ns()
        return self._time_ns

    def refresh(self) -> None:
        """Let the next ``time_ns`` read the clock."""
        self._time_ns = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait at most ``timeout`` seconds, counted from the last ``time``.

        The loop computes ``timeout`` from that same reading, so the timer is armed for
        exactly the time it means, however long ago it read the clock. Without a wait most
        calls return nothing, and then the turn and its time go on.
        """
        wait = -1
        ready: list[tuple[selectors.SelectorKey, int]] = []
        if timeout is not None:
            if timeout <= 0:
                self._unlooked += 1
                if self._unlooked < _TURNS_PER_LOOK:
                    return ready
                wait = 0
            else:
                self._arm(max(1, self.time_ns() + round(timeout * _NS)))
        self._unlooked = 0
        try:
            events = self._epoll.poll(wait)
        except InterruptedError:
            return ready
        finally:
            self._time_ns = None
        for fd, event in events:
            if fd == self._timer.fd:
                self._armed_ns = 0
                continue
            key = self._keys.get(fd)
            if key is not None:
                seen = 0
                if event & ~select.EPOLLIN:
                    seen |= selectors.EVENT_WRITE
                if event & ~select.EPOLLOUT:
                    seen |= selectors.EVENT_READ
                ready.append((key, seen & key.events))
        return ready

    def _arm(self, at_ns: int) -> None:
        if self._armed_ns == 0 or self._armed_ns > at_ns + _SAME_NS:
            self._timer.arm(at_ns)
            self._armed_ns = at_ns

    def close(self) -> None:
        """Close both descriptors and forget everything."""
        self._epoll.close()
        self._timer.close()
        self._keys.clear()

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        """Everything that is registered."""
        return self._map


def _mask(events: int) -> int:
    mask = 0
    if events & selectors.EVENT_READ:
        mask |= select.EPOLLIN
    if events & selectors.EVENT_WRITE:
        mask |= select.EPOLLOUT
    if mask == 0:
        raise ValueError(f"no known event in {events!r}")
    return mask


class PreciseLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers are exact; its ``time`` stands still within a turn."""

    def __init__(self) -> None:
        self._precise = PreciseSelector()
        super().__init__(self._precise)

    def time(self) -> float:
        """Monotonic seconds as of this turn of the loop."""
        return self._precise.time_ns() / _NS

    def turn_ns(self) -> int:
        """Monotonic nanoseconds as of this turn of the loop."""
        return self._precise.time_ns()

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[_Arguments]], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As asyncio's, counted from now and not from the start of this turn."""
        self._precise.refresh()
        return super().call_later(delay, callback, *args, context=context)


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop whose timers are exact. The caller runs and closes it."""
    return PreciseLoop()
