"""Seeds for each purpose, from the run's one seed.

Adding a purpose never changes the seed of another.
"""

from __future__ import annotations

import hashlib


def derived_seed(seed: int, *purpose: str) -> int:
    """A 63-bit seed for ``purpose``, a pure function of ``seed``; never 0."""
    text = "/".join((str(seed), *purpose))
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
    return number or 1
