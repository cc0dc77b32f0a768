"""When a broken connection is opened anew, and how long each attempt may take. Pure.

The kernel repeats a lost SYN after 1 s, 3 s, 7 s: a fresh attempt sees sooner that a leg is up
again. Every so often one has all the time of a transfer, for handshakes that are slow.
"""

from __future__ import annotations

_PAUSES_S = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Before each attempt; the last one repeats."""
_SHORT_S = 1.0
_PATIENT = 16


def pause_s(attempt: int) -> float:
    """Emulated seconds before attempt ``attempt``, from 0."""
    return _PAUSES_S[min(attempt, len(_PAUSES_S) - 1)]


def patience_s(attempt: int, whole_s: float) -> float:
    """Emulated seconds that it may take, of the ``whole_s`` of a transfer."""
    last = attempt % _PATIENT == _PATIENT - 1
    return whole_s if last else min(whole_s, _SHORT_S)
