"""Events: raw, append-only JSONL, one file a process, one schema.

A line is ``{"t": ns since the barrier, "node": …, "seq": …, "kind": …, "size": …,
…fields}``. The timeline hash covers (t, node, seq, kind, size) of every line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol, TextIO, TypeAlias

from testbed.contract.attempt import number_of, request_of

Value: TypeAlias = int | float | str | bool | list[int] | dict[str, int] | None


class Kind(StrEnum):
    """Every kind of event, with the fields beyond t, node, seq, kind, size.

    ``req`` is the request id; durations end in ``_ns``; ``size`` is bytes where it
    says so, else 0. Events of a request's later attempts also have ``attempt``, from 1 on.
    """

    # client
    REQUEST_SENT = (
        "request.sent"  # req, input_tokens, hit_tokens, output_tokens; size = wire_bytes expected
    )
    TOKEN = "token"  # req, pos, token, source(node)
    REQUEST_DONE = "request.done"  # req, tokens (list of int)
    REQUEST_FAILED = "request.failed"  # req, reason
    REQUEST_RETRIED = "request.retried"  # req, attempt (its number, from 1), reason
    # router
    # req, pipeline, prefill, decode, relay, reason, prefill_hit, decode_hit (blocks it believes in)
    REQUEST_ROUTED = "request.routed"
    INSTANCE_LOST = "instance.lost"  # peer, role, under_way (requests that it had a part in)
    INSTANCE_FOUND = "instance.found"  # peer, role; it was lost, and may be chosen again
    # prefill
    PREFILL_QUEUED = "prefill.queued"  # req
    PREFILL_START = "prefill.start"  # req, uncached, context, real_tokens
    PREFILL_END = "prefill.end"  # req
    POOL_QUEUED = "pool.queued"  # req, peer, busy, waiting; size = bytes with guard.queue_bytes
    POOL_ACQUIRED = "pool.acquired"  # req, peer, conn, wait_ns, busy, waiting
    POOL_RELEASED = "pool.released"  # req, peer, conn, busy, waiting
    # a further connection for a transfer that has one (pool.stripes)
    POOL_JOINED = "pool.joined"  # req, peer, conn, busy, waiting
    POOL_LEFT = "pool.left"  # req, peer, conn, busy, waiting; or it could not be opened
    # its connection is lent to another between two chunks, and back (pool.preempt)
    POOL_SUSPENDED = "pool.suspended"  # req, peer, conn, busy, waiting
    POOL_RESUMED = "pool.resumed"  # req, peer, conn, busy, waiting
    # req, peer, reason (queue-full | timeout | closed | cancelled, or why no connection could be
    # opened: no-port | no-descriptor | refused | unreachable | unanswered | timeout)
    POOL_REFUSED = "pool.refused"
    # where a discipline opens on demand: between queued and acquired (or refused)
    CONNECTION_OPENING = "connection.opening"  # req, peer, conn
    CONNECTION_OPENED = "connection.opened"  # req, peer, conn, took_ns, open (to that peer by now)
    # peer, conn, reason (after-use | idle | broken | lost | shrunk | closed), open (left)
    CONNECTION_CLOSED = "connection.closed"
    # req, peer, conn, blocks (, parts; epoch: of an attempt after the first; turns: parts one by
    # one); size = wire bytes
    TRANSFER_START = "transfer.start"
    TRANSFER_ACKED = "transfer.acked"  # req, peer, conn, duration_ns; size = wire bytes
    TRANSFER_FAILED = "transfer.failed"  # req, peer, conn, reason
    # req, peer, conn, rtt_us, rttvar_us, cwnd, retrans, lost, delivery_bps, min_rtt_us
    TCP_INFO = "tcp.info"
    # prefix caches (P and MD, RLD where it has one)
    CACHE_MATCHED = "cache.matched"  # req, blocks, of; size = bytes in use
    CACHE_PUBLISHED = "cache.published"  # req, blocks (new ones), evicted; size = bytes in use
    # req, blocks (asked for), evicted (since the start), reason ("" | too-large | busy: it is
    # served without being published); size = bytes in use
    CACHE_RESERVED = "cache.reserved"
    # blocks (in the cache), locks, reservations, under_way (requests given up by the stop);
    # nobody may hold a lock or a reservation any more; size = bytes in use
    CACHE_CLOSED = "cache.closed"
    # relay and main decode
    # req, tokens, cause, ids (tokens told to MD); size = bytes of the messages that told them
    RELAY_END = "relay.end"
    RELAY_STAYS = "relay.stays"  # req; RLD may go on twice as far, because the WAN stalls
    # req, again (after a preemption), held and waiting (sequences); size = bytes of KV held
    SEQUENCE_ADMITTED = "sequence.admitted"
    # req, tokens (of its answer, to be computed again), held, waiting; size = bytes of KV held
    SEQUENCE_PREEMPTED = "sequence.preempted"
    HANDOFF_START = "handoff.start"  # req, mode, heard (RLD's tokens known by then)
    HANDOFF_END = "handoff.end"  # req, position (first one of MD), computed (tokens extended)
    # decode
    KV_BEGIN = "kv.begin"  # req, peer, conn, blocks; size = wire bytes
    # req, blocks (, unequal: blocks that are not what was sent, missing: that never came); size =
    # wire bytes
    KV_VERIFIED = "kv.verified"
    KV_REFUSED = "kv.refused"  # req, reason
    # where a receiver has pages (guard.pages): a transfer took them, or gave them back; writers:
    # connections that can still bring blocks of it; reason (applied | refused | ended | given-up |
    # aborted | part-lost)
    PAGES_TAKEN = "pages.taken"  # req, epoch, pages, free (left)
    PAGES_FREED = "pages.freed"  # req, epoch, pages, free, reason, writers
    # a block was written into the page of another transfer, that of req; by (request), epoch (of
    # the writer), freed (why the writer's page was given to another)
    PAGE_OVERWRITTEN = "page.overwritten"  # req, page, by, epoch, freed
    DECODE_START = "decode.start"  # req, batch
    DECODE_END = "decode.end"  # req, tokens (count)
    # lab
    BARRIER = "barrier"  # -
    # link, dir (forward | backward), packets, drops, lost, backlog, interval_ns; size = bytes
    LINK_SAMPLE = "link.sample"
    # peer (a node that ended), wanted (by a fault), how (in words)
    NODE_LOST = "node.lost"
    # peer (a node that is back and as planned), away_ns, anew (whether the lab shaped it once more)
    NODE_BACK = "node.back"
    # peer, how (in words: what is not as planned); the run is invalid
    SHAPING_LOST = "shaping.lost"
    FAULT_BEGAN = "fault.began"  # fault, subject (node or link); it is in force
    # fault, subject (the sender that saw what the fault waits for), req
    FAULT_REACHED = "fault.reached"
    # fault, subject, and what it hit: req, or conn of a connection that it ended
    FAULT_HIT = "fault.hit"
    # fault, subject (, hits: frames, connections or bytes); it is undone
    FAULT_ENDED = "fault.ended"
    # the real clock only: a step that took 5 % longer than its profile, and what was counted by the
    # end (waits that ended late by bucket of testbed.contract.lateness, steps, late ones)
    STEP_LATE = "step.late"  # profile_ns, took_ns
    CLOCK_TALLY = "clock.tally"  # waits, steps, late
    HOST_SAMPLE = "host.sample"  # steal_ns, busy_ns, interval_ns (of all processors together)
    # every agent, and the lab (node and role "lab")
    AGENT_READY = "agent.ready"  # role
    AGENT_STOP = "agent.stop"  # status


class Clock(Protocol):
    """The one clock of a process."""

    def now_ns(self) -> int:
        """Nanoseconds since the barrier (negative before it)."""
        ...


class EventLog:
    """Writes one process's events; buffered, flushed on close and every ``flush_every`` lines."""

    def __init__(self, stream: TextIO, node: str, clock: Clock, flush_every: int = 512) -> None:
        self._stream = stream
        self._node = json.dumps(node)
        self._clock = clock
        self._flush_every = flush_every
        self._lines: list[str] = []
        self._seq = 0

    def emit(self, kind: Kind, size: int = 0, /, at_ns: int | None = None, **fields: Value) -> int:
        """Append one event; returns its time in nanoseconds since the barrier.

        ``req`` may be the job of an attempt: the event bears its request's id.
        """
        t = self._clock.now_ns() if at_ns is None else at_ns
        job = fields.get("req")
        if type(job) is int and number_of(job) > 0:
            fields |= {"req": request_of(job), "attempt": number_of(job)}
        self._lines.append(
            f'{{"t":{t},"node":{self._node},"seq":{self._seq},'
            f'"kind":"{kind.value}","size":{size}{_encoded(fields)}}}'
        )
        self._seq += 1
        if len(self._lines) >= self._flush_every:
            self.flush()
        return t

    def flush(self) -> None:
        """Hand all lines to the file."""
        if self._lines:
            self._stream.write("\n".join(self._lines) + "\n")
            self._lines.clear()
        self._stream.flush()


_value = json.JSONEncoder(separators=(",", ":")).encode


def _encoded(fields: Mapping[str, Value]) -> str:
    """Fields as JSON behind other ones. Most are numbers, which need no encoder."""
    parts: list[str] = []
    for name, value in fields.items():
        if type(value) is int:
            parts.append(f',"{name}":{value}')
        else:
            parts.append(f',"{name}":{_value(value)}')
    return "".join(parts)
