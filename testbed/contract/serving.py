"""The serving plane of a run: caches, routing, prefill queue, handoff. Values only."""

from __future__ import annotations

from pydantic import Field

from testbed.contract.handoff import HandoffConfig
from testbed.contract.record import Record
from testbed.contract.router import RouterConfig


class Caches(Record):
    """Byte budgets of the prefix caches, in emulated KV bytes. 0 switches one off."""

    prefill_bytes: int = Field(ge=0)
    """At each P: avoids computing."""
    decode_bytes: int = Field(ge=0)
    """At each MD (DRC): avoids transfers."""


class Serving(Record):
    """All that routing, prefilling and handing over are decided by.

    Attributes:
        chunk_tokens: most tokens of one prefill pass.
        prefill_batch: most prompts of one prefill pass.
        match_timeout_ns: how long P waits for MD's match before it gives a request up.
        rtt_ns: round trip between P's and MD's site as planned; sets the takeover's lead.
        stop: tokens that end an answer early.
        documents: (segment, emulated tokens) that P and MD hold from the start.
        site_of: (agent, site) of every agent.
        most_sequences: (agent, sequences of a full batch) of every RLD and MD.
        leg_payload_bps: ("site-site", payload bit/s of all legs together) of every path P to MD.
    """

    caches: Caches
    router: RouterConfig
    handoff: HandoffConfig = HandoffConfig()
    chunk_tokens: int = Field(gt=0)
    prefill_batch: int = Field(gt=0)
    match_timeout_ns: int = Field(gt=0)
    rtt_ns: int = Field(ge=0)
    stop: tuple[int, ...] = ()
    documents: tuple[tuple[int, int], ...] = ()
    site_of: tuple[tuple[str, str], ...] = ()
    most_sequences: tuple[tuple[str, int], ...] = ()
    leg_payload_bps: tuple[tuple[str, int], ...] = ()
