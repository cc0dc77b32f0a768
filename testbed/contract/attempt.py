"""Attempts: a request that could not be served is tried again, from its beginning.

Every attempt is a job of its own: its id is ``request + number * 2**32``, so that nothing
which an earlier attempt left on its way is taken for the later one's. The first attempt has
the request's own id. Output tokens depend on the request alone, so all attempts agree.
"""

from __future__ import annotations

_STRIDE = 1 << 32


def attempt_id(request: int, number: int) -> int:
    """The job of the ``number``-th attempt, counted from 0, at ``request`` (0..2**32 - 1)."""
    return request + number * _STRIDE


def request_of(job: int) -> int:
    """The request that a job serves."""
    return job % _STRIDE


def number_of(job: int) -> int:
    """Which attempt at its request a job is, counted from 0."""
    return job // _STRIDE
