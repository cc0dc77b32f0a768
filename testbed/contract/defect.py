"""Protections that a run of the field library may do without, each by its name.

A defect is a protection that is switched off, so that a failure which was reported in public can
be seen to happen. Only scenarios of the field library may name one (``scenario.defects``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Defect(StrEnum):
    """A protection of the path that KV takes, or of the agents around it. Named in ``defects``,
    it is off."""

    LATE_WRITE_FENCE = "late-write-fence"
    """A transfer that was given up, or that a newer attempt replaces, writes nothing any more."""
    DIGEST_CHECK = "digest-check"
    """A block whose digest is not the sender's is refused, and never handed on."""
    BLOCK_COUNT = "block-count"
    """A transfer is whole only when every one of its chunks has come; a missing one is named."""
    ABORT_ACK = "abort-ack"
    """Pages of an aborted transfer are freed once its sender has stopped, not before."""
    SIBLING_DRAIN = "sibling-drain"
    """Pages of a transfer in parts are freed once every part has ended."""
    TRANSFER_DEADLINE = "transfer-deadline"
    """Every transfer, and every wait for one, ends by a deadline; its pages are free then."""
    LANE_BYTES = "lane-bytes"
    """Admission to a pool counts bytes, and a payload that stalls gives its lane back."""
    RETRY_BUDGET = "retry-budget"
    """A transfer is tried again with back-off and a budget; no failure is for good."""
    RESEND_IN_PARTS = "resend-in-parts"
    """What took too long as a whole is sent again in parts, each with a deadline of its own."""

    LEG_FAILOVER = "leg-failover"
    """A transfer whose leg is down goes over another one; the leg is used again when it is up."""
    PEER_IDENTITY = "peer-identity"
    """An agent that ended, or was started anew, is known to be gone: nobody waits for it."""
    ADMISSION_CONTROL = "admission-control"
    """Queues at router, P and MD are bounded, and what does not fit is refused at once by name."""
    CLIENT_CANCEL = "client-cancel"
    """Who is left by its client stops at once, and gives everything back."""
    NONBLOCKING_CONTROL = "nonblocking-control"
    """No agent waits for a peer to take a control message."""
    RELAY_STAY = "relay-stay"
    """RLD goes on beyond its bounds, up to twice as far, while the WAN holds MD up."""
    PAIR_RECOVERY = "pair-recovery"
    """Who was cut off, and what broke, is tried again with back-off; no failure is for good."""
    DESCRIPTOR_RESERVE = "descriptor-reserve"
    """Without descriptors the one connection is refused by name; the agent and all others go on."""


NOTICED_BY: Mapping[Defect, str] = MappingProxyType(
    {
        Defect.LATE_WRITE_FENCE: "pages-owned",
        Defect.DIGEST_CHECK: "transfers-verified",
        Defect.BLOCK_COUNT: "transfers-verified",
        Defect.ABORT_ACK: "pages-owned",
        Defect.SIBLING_DRAIN: "pages-owned",
        Defect.TRANSFER_DEADLINE: "waits-bounded",
        Defect.LANE_BYTES: "pool-bounded",
        Defect.RETRY_BUDGET: "retries-bounded",
        Defect.RESEND_IN_PARTS: "retries-bounded",
        Defect.PEER_IDENTITY: "gone-noticed",
        Defect.ADMISSION_CONTROL: "queues-bounded",
        Defect.CLIENT_CANCEL: "cancel-heard",
        Defect.NONBLOCKING_CONTROL: "gone-noticed",
        Defect.DESCRIPTOR_RESERVE: "agents-stopped",
    }
)
"""Which check has to name what happens without a protection. Without the others (``leg-failover``,
``relay-stay``, ``pair-recovery``) answers come late or from elsewhere, which breaks no claim:
figures tell of it."""


def without(defects: tuple[Defect, ...]) -> str:
    """The protections that are off, in words; empty where all are on."""
    return f"Protections off: {', '.join(defects)}." if defects else ""
