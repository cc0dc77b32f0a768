"""``workload.jsonl``: the requests of a run, one a line, as the clients read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from testbed.contract.agent import Request
from testbed.errors import AnalysisError

_NOT_WHOLE = "is this a run folder, and is it whole? run the scenario again"


def write_requests(path: Path, requests: Sequence[Request]) -> None:
    """Write a new file; one that exists is never overwritten (``FileExistsError``)."""
    with path.open("x", encoding="utf-8") as stream:
        for request in requests:
            stream.write(request.model_dump_json())
            stream.write("\n")


def read_requests(path: Path) -> tuple[Request, ...]:
    """Read a workload file back.

    Raises:
        AnalysisError: it is missing or a line is not a request; names file and line.
    """
    requests: list[Request] = []
    number = 0
    try:
        with path.open("rb") as stream:
            for line in stream:
                number += 1
                requests.append(Request.model_validate_json(line))
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        reason = f"{key}: {first['msg']}" if key else first["msg"]
        raise AnalysisError("read workload", f"{path}:{number}", reason, _NOT_WHOLE) from fault
    except OSError as cause:
        raise AnalysisError(
            "read workload", str(path), cause.strerror or str(cause), _NOT_WHOLE
        ) from cause
    return tuple(requests)
