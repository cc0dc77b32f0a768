"""An event's line is what a JSON encoder would have written."""

from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.event import EventLog, Kind, Value

_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.lists(st.integers()),
    st.dictionaries(st.text(), st.integers()),
)


class _Clock:
    def now_ns(self) -> int:
        return -7


@given(st.text(), st.integers(0), st.dictionaries(st.sampled_from(("pos", "reason")), _VALUES))
def test_a_line_is_one_compact_json_object(node: str, size: int, fields: dict[str, Value]) -> None:
    stream = io.StringIO()
    log = EventLog(stream, node, _Clock())
    for _ in range(2):
        log.emit(Kind.TOKEN, size, **fields)
    log.flush()
    lines = stream.getvalue().splitlines()
    for seq, line in enumerate(lines):
        whole = {"t": -7, "node": node, "seq": seq, "kind": "token", "size": size, **fields}
        assert line == json.dumps(whole, separators=(",", ":"))
    assert len(lines) == 2
