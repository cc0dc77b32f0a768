"""The serving plane of a run: caches, routing, prefill queue, handoff. Values only."""

from __future__ import annotations

from enum import StrEnum

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
    relay_bytes: int = Field(default=0, ge=0)
    """At each RLD: avoids transfers over the fast link."""


class FirstToken(StrEnum):
    """Who emits the first token of an answer."""

    DECODE = "decode"
    """The instance that decodes, as in the paper."""
    PREFILL = "prefill"
    """P, which has computed it: an ablation. Decode goes on from position 1."""


class Reserve(StrEnum):
    """How much device memory a sequence is admitted with."""

    KNOWN = "known"
    """For the tokens that it has; it grows, and may be preempted."""
    WHOLE = "whole"
    """For all that it can ever have; it waits longer and is never preempted."""


class DeviceLimits(Record):
    """Device memory for KV of each RLD and MD; 0 takes the hardware profile's."""

    relay_bytes: int = Field(default=0, ge=0)
    decode_bytes: int = Field(default=0, ge=0)
    reserve: Reserve = Reserve.KNOWN
    headroom_tokens: int = Field(default=32, ge=0)
    """Room that admission leaves for each running sequence to grow."""


class Admission(Record):
    """How much may be under way before what comes is refused."""

    router_requests: int = Field(default=16_384, gt=0)
    """Requests that were routed and have not ended."""
    prefill_requests: int = Field(default=8_192, gt=0)
    """Requests that wait at one P, or are computed there."""
    decode_requests: int = Field(default=8_192, gt=0)
    """Requests at one MD, from the router's word to their end."""


_ANY = Admission()


def _is_any(admission: Admission) -> bool:
    return admission == _ANY


class Serving(Record):
    """All that routing, prefilling and handing over are decided by.

    Attributes:
        chunk_tokens: most tokens of one prefill pass.
        prefill_batch: most prompts of one prefill pass.
        match_timeout_ns: how long P waits for MD's match before it gives a request up.
        rtt_ns: round trip between P's and MD's site as planned; sets the takeover's lead.
        documents: (segment, emulated tokens) that P and MD hold from the start.
        site_of: (agent, site) of every agent.
        most_sequences: (agent, sequences of a full batch) of every RLD and MD.
        leg_payload_bps: ("site-site", payload bit/s of all legs together) of every path P to MD.
    """

    caches: Caches
    router: RouterConfig
    handoff: HandoffConfig = HandoffConfig()
    first_token: FirstToken = FirstToken.DECODE
    memory: DeviceLimits = DeviceLimits()
    admission: Admission = Field(default=_ANY, exclude_if=_is_any)
    chunk_tokens: int = Field(gt=0)
    prefill_batch: int = Field(gt=0)
    match_timeout_ns: int = Field(gt=0)
    rtt_ns: int = Field(ge=0)
    documents: tuple[tuple[int, int], ...] = ()
    site_of: tuple[tuple[str, str], ...] = ()
    most_sequences: tuple[tuple[str, int], ...] = ()
    leg_payload_bps: tuple[tuple[str, int], ...] = ()
