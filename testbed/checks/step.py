"""One event of the transfer path, as checks read it."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.event import Kind

NONE = -1
"""Stands for a field that the event kind does not carry."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event of the transfer path (pool, transfer, kv); times in nanoseconds."""

    t: int
    node: str
    seq: int
    kind: Kind
    req: int
    size: int = 0
    peer: str = ""
    conn: int = NONE
    busy: int = NONE
    waiting: int = NONE
    wait_ns: int = NONE
    duration_ns: int = NONE
    reason: str = ""
    blocks: int = NONE
    turns: int = 1
    """Parts that a transfer went in, one by one."""
    unequal: int = 0
    missing: int = 0
    """Blocks that were let pass although they are not what was sent, or never came."""


def in_order(step: Step) -> tuple[int, str, int]:
    """By time, then by node and the number of its event."""
    return step.t, step.node, step.seq
