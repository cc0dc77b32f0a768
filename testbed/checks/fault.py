"""Why a file could not be read, in one line: the rest of a validation error helps nobody."""

from __future__ import annotations

from pydantic import ValidationError


def brief(error: OSError | ValidationError) -> str:
    """Return the reason of an ``OSError``, or key and reason of the first invalid field."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    return f"{key}: {first['msg']}" if key else first["msg"]
