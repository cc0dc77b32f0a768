"""One row a transfer, for looking at the tail: who was slow, and was it a large one?

Emulated and ideal times stand side by side, so that a slow transfer can be told apart
from one that an ideal link would have made slow as well.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pandas

from testbed.errors import UsageError
from testbed.metrics.events import read_events
from testbed.metrics.ideal import ideal_outcomes
from testbed.metrics.routing import main_hits
from testbed.metrics.run import measured, read_run
from testbed.metrics.transfer import acked_transfers


@dataclass(frozen=True, slots=True)
class TailRow:
    """One acknowledged transfer; times in seconds, ``hit_share`` from 0 to 1.

    ``hit_share`` is what MD held: as its cache said, or without one as the workload did.

    ``oracle_wait_s`` and ``oracle_duration_s`` are None where no oracle ran, or where a
    request was transferred more than once (its ideal fates cannot be told apart).
    """

    req: int
    in_window: bool
    arrival_s: float
    size_bytes: int
    hit_share: float
    wait_s: float
    duration_s: float
    oracle_wait_s: float | None
    oracle_duration_s: float | None


def transfer_rows(run_folder: Path) -> tuple[TailRow, ...]:
    """All acknowledged transfers of a run, in order of the acknowledgement.

    ``arrival_s`` is the request's time in the workload (0 in a closed loop).

    Raises:
        AnalysisError: a file of the run is missing, malformed or contradicts another.
    """
    run, events = read_run(run_folder), read_events(run_folder)
    inside = measured(run, events)
    acked = acked_transfers(run, events)
    held = main_hits(run, events)
    ideal: dict[int, tuple[float, float] | None] = {}
    for outcome in ideal_outcomes(run, events):
        again = outcome.req in ideal
        ideal[outcome.req] = None if again else (outcome.wait_s, outcome.duration_s)
    rows: list[TailRow] = []
    for req, size, wait_s, duration_s in zip(
        acked.req.tolist(),
        acked.size_bytes.tolist(),
        acked.wait_s.tolist(),
        acked.duration_s.tolist(),
        strict=True,
    ):
        request = run.requests[req]
        fate = ideal.get(req)
        rows.append(
            TailRow(
                req=req,
                in_window=bool(inside[req]),
                arrival_s=request.at_ns / 1e9,
                size_bytes=size,
                hit_share=held.get(req, request.hit_tokens / request.input_tokens),
                wait_s=wait_s,
                duration_s=duration_s,
                oracle_wait_s=fate[0] if fate else None,
                oracle_duration_s=fate[1] if fate else None,
            )
        )
    return tuple(rows)


def write_table(path: Path, rows: tuple[TailRow, ...]) -> None:
    """Write ``rows`` as CSV or Parquet, by the file's ending; whole or not at all.

    Raises:
        UsageError: the ending names neither, or the file cannot be written.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise UsageError(
            "write the transfers", str(path), "it ends neither in .csv nor in .parquet",
            "name a file that ends in .csv or .parquet",
        )  # fmt: skip
    table = pandas.DataFrame(
        [asdict(row) for row in rows], columns=[f.name for f in fields(TailRow)]
    )
    draft = path.with_name(path.name + ".part")
    try:
        if path.suffix == ".csv":
            table.to_csv(draft, index=False)
        else:
            table.to_parquet(draft, index=False, engine="pyarrow")
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UsageError(
            "write the transfers", str(path), str(error), "choose another file"
        ) from error
