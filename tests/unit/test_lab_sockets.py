"""The kernel's list of sockets, read without any program."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.breakpoint import Socket
from testbed.errors import LabError
from testbed.lab.sockets import parse, sockets

pytestmark = pytest.mark.unit
LIST = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100000A:4E21 0200000A:1F90 01 0000FFFF:00000010 01:00000014 00000000     0        0 20 1
   1: 00000000:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 21 1
   2: 0100000A:4E20 0200000A:1F90 06 00000000:00000000 03:00001771 00000000     0        0 0 3
"""


def test_addresses_states_and_queues_are_read() -> None:
    assert parse(LIST) == (
        Socket(state="listen", here="0.0.0.0:8080", there="0.0.0.0:0", unsent=0, unread=3),
        Socket(state="time-wait", here="10.0.0.1:20000", there="10.0.0.2:8080", unsent=0, unread=0),
        Socket(
            state="established", here="10.0.0.1:20001", there="10.0.0.2:8080", unsent=65_535,
            unread=16,
        ),
    )  # fmt: skip


def test_a_namespace_is_read_beside_its_own_path(tmp_path: Path) -> None:
    (tmp_path / "7" / "net").mkdir(parents=True)
    (tmp_path / "7" / "net" / "tcp").write_text(LIST)
    assert len(sockets(f"{tmp_path}/7/ns/net")) == 3
    with pytest.raises(LabError, match="list sockets"):
        sockets(f"{tmp_path}/8/ns/net")
