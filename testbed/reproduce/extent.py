"""How much of a study is run."""

from __future__ import annotations

from enum import StrEnum


class Extent(StrEnum):
    """Quick shows that it works, normal gives the figures, full narrows their intervals."""

    QUICK = "quick"
    NORMAL = "normal"
    FULL = "full"
