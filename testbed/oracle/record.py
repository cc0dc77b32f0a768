"""``oracle.jsonl``: the ideal fate of every transfer, one a line, in seconds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from testbed.errors import AnalysisError
from testbed.oracle.sharing import Outcome


def write_outcomes(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Write the file anew, whole or not at all: analysis may be redone."""
    draft = path.with_name(path.name + ".part")
    with draft.open("w", encoding="utf-8") as stream:
        for outcome in outcomes:
            line = {
                "req": outcome.req,
                "at_s": outcome.at_s,
                "bytes": outcome.size_bytes,
                "wait_s": outcome.wait_s,
                "duration_s": outcome.duration_s,
            }
            stream.write(json.dumps(line, separators=(",", ":")) + "\n")
    os.replace(draft, path)


def read_outcomes(path: Path) -> tuple[Outcome, ...]:
    """Read it back.

    Raises:
        AnalysisError: it is missing, or a line is not an outcome; names file and line.
    """
    outcomes: list[Outcome] = []
    number = 0
    try:
        with path.open(encoding="utf-8") as stream:
            for line in stream:
                number += 1
                fields = json.loads(line)
                outcomes.append(
                    Outcome(
                        req=int(fields["req"]),
                        at_s=float(fields["at_s"]),
                        size_bytes=int(fields["bytes"]),
                        wait_s=float(fields["wait_s"]),
                        duration_s=float(fields["duration_s"]),
                    )
                )
    except OSError as cause:
        raise AnalysisError(
            "read oracle", str(path), str(cause), "compute metrics first"
        ) from cause
    except (ValueError, KeyError, TypeError) as cause:
        raise AnalysisError(
            "read oracle", f"{path}:{number}", f"is no outcome ({cause})"
        ) from cause
    return tuple(outcomes)
