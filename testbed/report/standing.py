"""A run that stands at a breakpoint, in words: links, pools, sockets. Reads, never writes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from testbed.contract.breakpoint import Passage, Picture
from testbed.report import wording
from testbed.report.table import Table

_POOL = "pool."


@dataclass(frozen=True, slots=True)
class PoolNow:
    """The pool of a pair as its sender's record has it, which is written in batches.

    ``t_s`` is the emulated time of that record.
    """

    node: str
    peer: str
    busy: int
    waiting: int
    t_s: float


def standing_tables(run: Path, picture: Picture) -> tuple[Table, ...]:
    """Links, pools and sockets at a breakpoint."""
    when = f"{picture.at_ns / 1e9:g} s"
    links = Table(
        caption=f"Links at {when}",
        head=("link", "direction", "passed", "waits", "under way", "dropped", "lost"),
        rows=tuple(_link(one) for one in picture.links),
        worded=(1,),
    )
    pools = Table(
        caption="Pools, by what agents have written so far",
        head=("sender", "receiver", "in use", "waiting", "as of"),
        rows=tuple(
            (one.node, one.peer, str(one.busy), str(one.waiting), f"{one.t_s:.3f} s")
            for one in pools_now(run)
        ),
        worded=(1,),
    )
    sockets = Table(
        caption=f"TCP sockets at {when}",
        head=("node", "state", "sockets", "unsent", "unread"),
        rows=tuple(row for node in picture.sockets for row in _sockets(picture, node)),
        worded=(1,),
    )
    return links, pools, sockets


def pools_now(run: Path) -> tuple[PoolNow, ...]:
    """The last word of every sender about each of its pools; a line cut short is left out."""
    last: dict[tuple[str, str], PoolNow] = {}
    for path in sorted((run / "events").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if f'"kind":"{_POOL}' not in line:
                continue
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue
            pair = str(event["node"]), str(event["peer"])
            last[pair] = PoolNow(*pair, event["busy"], event["waiting"], event["t"] / 1e9)
    return tuple(last[pair] for pair in sorted(last))


def _link(one: Passage) -> tuple[str, ...]:
    return (
        one.link, one.direction, wording.size(one.bytes), wording.size(one.backlog_bytes),
        wording.size(one.flight_bytes), wording.count(one.drops), wording.count(one.lost),
    )  # fmt: skip


def _sockets(picture: Picture, node: str) -> list[tuple[str, ...]]:
    """One row a state; each socket stands in the picture."""
    mine = picture.sockets[node]
    counts = Counter(one.state for one in mine)
    return [
        (
            node, state, wording.count(count),
            wording.size(sum(one.unsent for one in mine if one.state == state)),
            wording.count(sum(one.unread for one in mine if one.state == state))
            if state == "listen"
            else wording.size(sum(one.unread for one in mine if one.state == state)),
        )
        for state, count in sorted(counts.items())
    ]  # fmt: skip
