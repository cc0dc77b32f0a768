"""The text that a real model gave across the WAN, and whether the local engine agrees."""

from __future__ import annotations

import json
from pathlib import Path

from testbed.errors import AnalysisError


def answer_text(run: Path) -> str:
    """The answer of the run's first request, as text.

    The reference engine writes its own text; it stands for the answer only because the
    run's checks compared every token.

    Raises:
        AnalysisError: the run has no reference or no text.
    """
    path = run / "reference.jsonl"
    try:
        first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
        return str(first["text"])
    except (OSError, IndexError, KeyError, ValueError) as error:
        raise AnalysisError(
            "read the answer", str(path), f"{type(error).__name__}: {error}", "run it again"
        ) from error
