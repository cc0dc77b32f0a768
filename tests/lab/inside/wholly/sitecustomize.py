"""Makes agents write every event down at once, so that a killed one has told all it did.

Python imports this module at start where it lies on PYTHONPATH (see ../../test_peer_failures.py).
"""

from __future__ import annotations

import sys


def _write_at_once() -> None:
    from testbed.contract.event import EventLog

    EventLog.__init__.__defaults__ = (1,)


if "testbed_agents.zygote" in sys.orig_argv:
    _write_at_once()
