"""Events of one kind as typed columns: 20 to 60 bytes an event instead of a Python object.

::

    {"t":5,"node":"c1","seq":9,"kind":"token","size":0,"req":3,"pos":0,"source":"md1"}
       │        │          │                   │        │       │          │
       t      nodes       seq                size    integers["req"] …   texts["source"]
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.contract.event import Kind

Integers = NDArray[np.int64]
Codes = NDArray[np.int32]

_INTEGERS: Mapping[Kind, tuple[str, ...]] = {
    Kind.REQUEST_SENT: ("req",),
    Kind.TOKEN: ("req", "pos"),
    Kind.REQUEST_DONE: ("req",),
    Kind.REQUEST_FAILED: ("req",),
    Kind.REQUEST_ROUTED: ("req", "prefill_hit", "decode_hit"),
    Kind.PREFILL_QUEUED: ("req",),
    Kind.PREFILL_END: ("req",),
    Kind.PREFILL_START: ("req", "uncached", "context"),
    Kind.POOL_QUEUED: ("req",),
    Kind.POOL_ACQUIRED: ("req",),
    Kind.POOL_RELEASED: ("req",),
    Kind.POOL_REFUSED: ("req",),
    Kind.POOL_JOINED: ("req",),
    Kind.POOL_LEFT: ("req",),
    Kind.POOL_SUSPENDED: ("req",),
    Kind.POOL_RESUMED: ("req",),
    Kind.CONNECTION_OPENING: ("req",),
    Kind.CONNECTION_OPENED: ("took_ns",),
    Kind.TRANSFER_START: ("req", "blocks"),
    Kind.TRANSFER_ACKED: ("req",),
    Kind.TRANSFER_FAILED: ("req",),
    Kind.TCP_INFO: ("req", "retrans"),
    Kind.CACHE_MATCHED: ("req", "blocks", "of"),
    Kind.RELAY_END: ("req", "tokens", "ids"),
    Kind.SEQUENCE_PREEMPTED: ("req", "tokens"),
    Kind.DECODE_START: ("req",),
    Kind.HANDOFF_START: ("req", "heard"),
    Kind.HANDOFF_END: ("req", "position"),
    Kind.KV_VERIFIED: ("req",),
    Kind.LINK_SAMPLE: ("drops", "backlog", "interval_ns"),
}
"""The fields that metrics need; a line without one is an error. Others are not kept."""

_TEXTS: Mapping[Kind, tuple[str, ...]] = {
    Kind.TOKEN: ("source",),
    Kind.REQUEST_FAILED: ("reason",),
    Kind.POOL_QUEUED: ("peer",),
    Kind.POOL_ACQUIRED: ("peer",),
    Kind.POOL_RELEASED: ("peer",),
    Kind.POOL_REFUSED: ("peer", "reason"),
    Kind.POOL_JOINED: ("peer",),
    Kind.POOL_LEFT: ("peer",),
    Kind.POOL_SUSPENDED: ("peer",),
    Kind.POOL_RESUMED: ("peer",),
    Kind.CONNECTION_OPENING: ("peer",),
    Kind.CONNECTION_OPENED: ("peer",),
    Kind.CONNECTION_CLOSED: ("peer", "reason"),
    Kind.TRANSFER_START: ("peer",),
    Kind.TRANSFER_ACKED: ("peer",),
    Kind.TRANSFER_FAILED: ("peer",),
    Kind.TCP_INFO: ("peer",),
    Kind.REQUEST_ROUTED: ("pipeline", "prefill", "decode", "reason"),
    Kind.HANDOFF_START: ("mode",),
    Kind.LINK_SAMPLE: ("link", "dir"),
    Kind.FAULT_BEGAN: ("fault", "subject"),
    Kind.FAULT_ENDED: ("fault", "subject"),
    Kind.FAULT_REACHED: ("fault",),
}

ABSENT = -1
"""What a field of ``OPTIONAL`` is where its line has none."""
OPTIONAL: Mapping[Kind, tuple[str, ...]] = {
    Kind.POOL_ACQUIRED: ("conn",),
    Kind.TRANSFER_START: ("conn",),
    Kind.TCP_INFO: ("conn", "cwnd", "rtt_us"),
    Kind.SEQUENCE_ADMITTED: ("req",),
    Kind.LINK_SAMPLE: ("packets", "lost"),
}
"""Fields that only the search for causes reads; it does without them."""


@dataclass(frozen=True, slots=True)
class Table:
    """All events of one kind in order of (t, node, seq).

    ``node`` and ``texts`` hold codes into ``Events.names``; times are nanoseconds since
    the barrier, ``size`` is bytes.
    """

    t: Integers
    node: Codes
    seq: Integers
    size: Integers
    integers: Mapping[str, Integers]
    texts: Mapping[str, Codes]

    @property
    def req(self) -> Integers:
        """The request id of each event."""
        return self.integers["req"]


class Growing:
    """A table while lines come in."""

    def __init__(self, kind: Kind) -> None:
        self.integers = {name: array("q") for name in _INTEGERS.get(kind, ())}
        self.optional = {name: array("q") for name in OPTIONAL.get(kind, ())}
        self.texts = {name: array("i") for name in _TEXTS.get(kind, ())}
        self.t = array("q")
        self.node = array("i")
        self.seq = array("q")
        self.size = array("q")

    def finish(self, rank: Codes) -> Table:
        """Sort; ``rank`` maps a name's code to its place in alphabetical order."""
        t, seq = _integers(self.t), _integers(self.seq)
        node = _codes(self.node)
        order = np.lexsort((seq, rank[node], t))
        return Table(
            t=t[order],
            node=node[order],
            seq=seq[order],
            size=_integers(self.size)[order],
            integers={
                name: _integers(values)[order]
                for name, values in (*self.integers.items(), *self.optional.items())
            },
            texts={name: _codes(values)[order] for name, values in self.texts.items()},
        )


def _integers(values: array[int]) -> Integers:
    return np.frombuffer(values, dtype=np.int64) if values else np.empty(0, dtype=np.int64)


def _codes(values: array[int]) -> Codes:
    return np.frombuffer(values, dtype=np.int32) if values else np.empty(0, dtype=np.int32)
