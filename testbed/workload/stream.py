"""Seeded streams of random numbers, one for each purpose.

Every purpose (arrivals, hits, input lengths, output lengths) owns a stream that is
a function of (seed, purpose) alone, so that one more draw for one purpose never
shifts what another one gets. numpy keeps a stream stable within one version
(NEP 19); the version is pinned and part of a run's provenance.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, purpose: str) -> np.random.Generator:
    """The PCG64 generator of ``purpose`` under ``seed``."""
    digest = hashlib.sha256(f"{seed}\n{purpose}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
