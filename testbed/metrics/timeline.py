"""The fingerprint of a run: SHA-256 over every event's time, place, number, kind and size.

No wall times and no process ids take part, so two runs of one seed under the virtual
clock have one fingerprint. It is a hash of text, so any other program can redo it::

    sort by (t, node, seq); for each event  "<t>\\t<node>\\t<seq>\\t<kind>\\t<size>\\n"
"""

from __future__ import annotations

import hashlib

import numpy as np

from testbed.contract.event import Kind
from testbed.metrics.events import Events

_CHUNK = 8192


def timeline_sha256(events: Events) -> str:
    """The hexadecimal fingerprint of ``events``."""
    kinds = tuple(Kind)
    tables = [events[kind] for kind in kinds]
    t = np.concatenate([table.t for table in tables])
    node = np.concatenate([table.node for table in tables])
    seq = np.concatenate([table.seq for table in tables])
    size = np.concatenate([table.size for table in tables])
    kind_of = np.repeat(np.arange(len(kinds), dtype=np.int8), [table.t.size for table in tables])
    order = np.lexsort((seq, events.rank[node], t))
    digest = hashlib.sha256()
    for start in range(0, order.size, _CHUNK):
        some = order[start : start + _CHUNK]
        columns = (t[some], node[some], seq[some], kind_of[some], size[some])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        digest.update(
            "".join(
                f"{at}\t{events.names[name]}\t{number}\t{kinds[kind].value}\t{amount}\n"
                for at, name, number, kind, amount in rows
            ).encode()
        )
    return digest.hexdigest()
