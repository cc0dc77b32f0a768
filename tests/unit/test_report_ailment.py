"""Every fault that an agent applies itself is told in words of its own."""

from __future__ import annotations

from typing import get_args

import pytest

from testbed.contract.ailment import (
    AgentEffect,
    Backlog,
    DropConnection,
    FewDescriptors,
    FewPorts,
    Jump,
    Leak,
    Leave,
    Shrink,
    Silence,
    SkipChunk,
    SlowCompute,
    Stale,
    Stall,
)
from testbed.report.ailment import ailment

pytestmark = pytest.mark.unit
TOLD: tuple[tuple[AgentEffect, str], ...] = (
    (SlowCompute(factor=2.5), "steps take 2.5 times their profile"),
    (Stall(), "reads no KV"),
    (FewDescriptors(left=3), "may open 3 files and sockets more"),
    (Jump(offset_ns=3 * 10**9), "its wall clock is 3.00 s ahead"),
    (Jump(offset_ns=-(10**9)), "its wall clock is 1.00 s behind"),
    (Backlog(length=4), "accepts no connection; 5 wait in the kernel"),
    (Silence(), "hears no control message"),
    (Silence(delay_ns=5 * 10**9), "hears control messages 5.00 s late"),
    (Leave(clean=True, requests=(3, 5), share=1, seed=0, tokens=2),
     "leaves requests 3, 5 after 2 tokens, and says so"),
    (Leave(clean=False, share=0.25, seed=0, after_ns=10**8),
     "leaves 25.0 % of its requests 100 ms after it sent them, and tells nobody"),
    (Leave(clean=False, share=1, seed=0), "leaves the request of that transfer, and tells nobody"),
    (Shrink(peer="md1", lose=3), "3 connections to md1 fewer"),
    (Leak(peer="md1", each=5), "one of 5 loans of connections to md1 is never given back"),
    (FewPorts(peer="md1", left=9), "9 source ports to md1 left"),
    (DropConnection(peer="md1", connection=2, clean=True), "connection 2 to md1 is ended in order"),
    (DropConnection(peer="md1", connection=2, clean=False), "connection 2 to md1 is reset"),
    (SkipChunk(peer="md1", chunk=1), "chunk 2 of every transfer to md1 is never sent"),
    (SkipChunk(peer="md1", transfer=4), "the last chunk of transfer 4 to md1 is never sent"),
    (Stale(peer="md1", transfer=1), "transfer 1 to md1 has other pages than its digests say"),
)  # fmt: skip


@pytest.mark.parametrize(("effect", "words"), TOLD)
def test_an_ailment_in_words(effect: AgentEffect, words: str) -> None:
    assert ailment(effect) == words


def test_no_ailment_is_left_out() -> None:
    union = get_args(AgentEffect)[0]
    assert {type(effect) for effect, _ in TOLD} == set(get_args(union))
