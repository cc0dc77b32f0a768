"""Building blocks of every file model: strict plain numbers, names, one line texts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
"""How many of something; the only bare whole numbers that files may hold."""

TokenId = Annotated[int, Field(strict=True, ge=0, lt=2**31)]

Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]

Number = Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]
"""A parameter without a unit (the two of a Beta distribution)."""

Name = Annotated[
    str, StringConstraints(strict=True, pattern=r"^[a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?$")
]
"""Name of a file, a class or a profile: lower case, digits, dots and dashes."""

HardwareName = Annotated[
    str,
    StringConstraints(
        strict=True, pattern=r"^([a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?|[^\x00-\x1f]{1,400}\.yaml)$"
    ),
]
"""A profile's name, or the path of a file that ends in .yaml and holds one profile."""

Line = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2_000)]
"""Text for people: a description or a source."""
