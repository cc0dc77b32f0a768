"""KV that overtakes its announcement waits for it; nothing counts as named before."""

from __future__ import annotations

import asyncio

import pytest

from testbed.errors import ProtocolError
from testbed_agents.serving.announced import Announced
from testbed_agents.transport import IncomingTransfer

TRANSFER = IncomingTransfer(7, 0, (), 0, "p1", 0)


def test_a_transfer_that_waits_does_not_name_its_request() -> None:
    async def story() -> None:
        announced = Announced(10**9)
        waiting = asyncio.create_task(announced.wait(TRANSFER))
        await asyncio.sleep(0)
        assert 7 not in announced
        announced.add(7)
        await waiting
        assert 7 in announced

    asyncio.run(story())


def test_a_transfer_that_nobody_names_is_refused() -> None:
    with pytest.raises(ProtocolError, match="not announced in time"):
        asyncio.run(Announced(1).wait(TRANSFER))
