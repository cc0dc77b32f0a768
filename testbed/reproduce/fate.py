"""What became of each request of a run: first token, transfer, and which came first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import read_events
from testbed.metrics.outcome import completed
from testbed.metrics.percentile import NS
from testbed.metrics.routing import pipeline_of
from testbed.metrics.run import measured, read_run, role_codes
from testbed.metrics.stages import earliest, first
from testbed.metrics.token import answers_of
from testbed.metrics.transfer import acked_transfers


@dataclass(frozen=True, slots=True)
class Fate:
    """One answered request of the measuring window.

    Attributes:
        at_s: when it arrived, from the barrier.
        ttft_s: to its first token at the client.
        transfer_s: of its KV to MD, from connection acquired to final acknowledgement; None
            where none was acknowledged (nothing to send, or cut off at the end of the run).
        relayed: whether it went through RLD.
        masked: whether its first token was at the client before MD had the KV.
    """

    req: int
    at_s: float
    ttft_s: float
    transfer_s: float | None
    relayed: bool
    masked: bool


@cache
def fates(folder: Path) -> tuple[Fate, ...]:
    """The answered requests of a run of the serving plane, by arrival.

    Raises:
        AnalysisError: a file of the run is missing, malformed or contradicts another.
    """
    run, events = read_run(folder), read_events(folder)
    inside = measured(run, events)
    answers = answers_of(run, events, inside, completed(run, events))
    acked = acked_transfers(run, events)
    took = dict(zip(acked.req.tolist(), acked.duration_s.tolist(), strict=True))
    pipelines = pipeline_of(run, events, inside)
    sent = first(run, events, Kind.REQUEST_SENT)
    table = events[Kind.KV_VERIFIED]
    main = np.isin(table.node, role_codes(run, events, Role.DECODE))
    verified = earliest(table.req[main], table.t[main])
    rows: list[Fate] = []
    for req, ttft_s, answered in zip(
        answers.req.tolist(), answers.ttft_s.tolist(), answers.answered.tolist(), strict=True
    ):
        if not answered:
            continue
        token_ns = sent[req] + round(ttft_s * NS)
        rows.append(
            Fate(
                req=req,
                at_s=sent[req] / NS,
                ttft_s=ttft_s,
                transfer_s=took.get(req),
                relayed="RLD" in pipelines.get(req, ""),
                masked=req not in verified or token_ns < verified[req],
            )
        )
    return tuple(sorted(rows, key=lambda fate: fate.at_s))
