"""The base of every value that crosses a file: frozen, strict, no unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen value with a JSON form; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)
