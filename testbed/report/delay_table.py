"""Why requests waited: one plain sentence a delay, and how many have which root."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from testbed.checks.metrics_file import MetricsFile
from testbed.errors import AnalysisError
from testbed.metrics.attribution.record import Causes, Delay, Link, Roots
from testbed.report import wording
from testbed.report.summary import RunSummary
from testbed.report.table import Table

SHOWN_MAX = 10
"""Delays of each sort in the table; ``metrics.json`` has 20."""
TOLD = 0.1
"""Shares of a delay below this are left out of its sentence."""
LISTS = ("stalls", "slow_first_tokens", "slow_transfers")

_WAITED = {
    "route": "the router's decision was awaited",
    "assign": "the router's word was on its way to P",
    "prefill-queue": "it queued for prefill",
    "prefill": "its prompt was computed",
    "match": "P awaited the receiver's word of what it holds",
    "pool": "its KV waited for a connection",
    "transfer": "its KV was under way",
    "admission": "it waited for device memory",
    "load": "its KV was copied onto the device",
    "handoff": "MD caught up with RLD",
    "decode": "its source decoded no token of it",
    "delivery": "its tokens were decoded and not delivered",
}
_ROOTS = {
    "loss": "packets lost on {subject}",
    "congestion": "{subject} was full",
    "line": "the bytes take that long on {subject}",
    "window": "the congestion window of {subject} was smaller than the link",
    "pool": "all connections of {subject} were in use",
    "prefill-queue": "{subject} was busy with other prompts",
    "prefill": "the prompt takes {subject} that long",
    "memory": "the device memory of {subject} was full",
    "device": "the copy onto the device of {subject}",
    "decode": "{subject} was in a step",
    "handoff": "{subject} had tokens of RLD to compute first",
    "message": "a message {subject} was under way",
    "unexplained": "nothing in the record explains most of it",
}


def delay_tables(run: RunSummary) -> tuple[Table, ...]:
    """Sentences about the worst delays, and counts of roots; none where nothing was delayed."""
    if run.metrics is None:
        return ()
    causes, delays = read_delays(run.metrics)
    counted = (
        ("stalls", causes.stalls),
        ("late first tokens", causes.first_tokens),
        ("slow transfers", causes.transfers),
    )
    tables = [_worst(delays), _roots(counted)]
    return tuple(table for table in tables if table.rows)


def read_delays(metrics: MetricsFile) -> tuple[Causes, tuple[Delay, ...]]:
    """What ``metrics.json`` has; nothing where an earlier version wrote it.

    Raises:
        AnalysisError: it is there and malformed.
    """
    tree: Mapping[str, object] = metrics.tree
    delays: list[Delay] = []
    try:
        causes = Causes.model_validate(tree.get("causes", {}))
        for name in LISTS:
            rows = tree.get(name, [])
            if isinstance(rows, list):
                delays += [Delay.model_validate(row) for row in rows[:SHOWN_MAX]]
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise AnalysisError(
            "read metrics", str(metrics.path), f"{key}: {first['msg']}",
            "compute it again: testbed report FOLDER",
        ) from fault  # fmt: skip
    return causes, tuple(delays)


def sentence(delay: Delay) -> str:
    """The delay, what was waited for, and why, as far as the record says."""
    long = wording.seconds(delay.length_s)
    text = {
        "stall": f"request {delay.req} had no token for {long} before token {delay.position}",
        "first-token": f"request {delay.req} had its first token after {long}",
        "transfer": f"the KV of request {delay.req} took {long} for {delay.source}",
    }[delay.what]
    links = {link.kind: link for link in delay.chain}
    parts = [_waited(delay), _through(delay, links)]
    middle = ", ".join(part for part in parts if part)
    text += f": {middle}; " if middle else ": "
    text += _root(delay, links)
    if delay.unexplained_s >= TOLD * delay.length_s:
        text += f"; {wording.seconds(delay.unexplained_s)} are unexplained"
    return f"{text}."


def _waited(delay: Delay) -> str:
    """The two longest waits, where there is more than the one of a transfer."""
    if delay.what == "transfer":
        return ""
    longest = sorted(delay.waits.items(), key=lambda wait: -wait[1])[:2]
    return ", ".join(
        f"{_WAITED.get(name, name)} for {wording.seconds(seconds)}"
        for name, seconds in longest
        if seconds >= TOLD * delay.length_s
    )


def _through(delay: Delay, links: Mapping[str, Link]) -> str:
    """The transfer in between, if there was one: its own, or that of who held its connection."""
    transfer, connection = links.get("transfer"), links.get("connection")
    if transfer is None:
        return ""
    on = "" if connection is None else f" on connection {connection.subject.rpartition(' ')[2]}"
    held = "held by" if links["wait"].subject.startswith("pool ") else "as"
    return f"{held} {transfer.subject}{on} ({transfer.evidence})"


def _root(delay: Delay, links: Mapping[str, Link]) -> str:
    seconds = sum(
        share.seconds
        for share in delay.shares
        if (share.cause, share.fault) == (delay.root, delay.fault)
    )
    leg = links.get("leg")
    seen = "" if leg is None or not leg.evidence else f" ({leg.evidence})"
    if delay.root == "unexplained":
        return f"{_ROOTS['unexplained']}{seen}"
    explains = f" explains {wording.seconds(seconds)}"
    if delay.root == "fault":
        where = f" on {delay.subject}" if leg is None else f" on {leg.subject}"
        return f"fault {delay.fault}{where}{seen}{explains}"
    told = _ROOTS.get(delay.root, delay.root).format(subject=delay.subject)
    return f"{told}{seen}: that{explains}"


def _worst(delays: tuple[Delay, ...]) -> Table:
    rows = tuple(
        (
            {"stall": "stall", "first-token": "first token", "transfer": "transfer"}[delay.what],
            wording.seconds(delay.begin_s),
            wording.seconds(delay.length_s),
            f"{delay.root} {delay.fault}".strip(),
            sentence(delay),
        )
        for delay in delays
    )
    return Table(
        caption="The longest delays and what explains them",
        head=("what", "from", "for", "root", "in words"),
        rows=rows, worded=(3, 4), prose=True,
        notes=(
            "Each part is an interval of the record; metrics.json has the chains with their "
            "shares. What nothing explains is said.",
        ),
    )  # fmt: skip


def _roots(counted: tuple[tuple[str, Roots], ...]) -> Table:
    rows = [
        (
            name,
            f"{roots.count:,}",
            ", ".join(f"{cause} {count:,}" for cause, count in roots.by_cause.items()),
            ", ".join(f"{fault} {count:,}" for fault, count in roots.by_fault.items()),
            wording.share(roots.unexplained_s / roots.total_s if roots.total_s else None),
        )
        for name, roots in counted
        if roots.count
    ]
    return Table(
        caption="Delays by root cause",
        head=("what", "count", "root causes", "faults", "unexplained time"),
        rows=tuple(rows), worded=(2, 3), prose=True,
    )  # fmt: skip
