"""KV over a pool of TCP connections: frames, padding, acknowledgements.

::

    KvSender ── PoolGate ── Bundle of Lanes ══ TCP ══ Inlets ── KvReceiver ── handler
        exchange, retry (pure) ┘ │ layout, frame, padding │ parser (pure), epochs (pure)
                                                          └ landings ── pages (pure)

A transfer may go in parts over several connections (``part``); ``assembly`` makes them whole.
How one ends that is not applied is the matter of ``withdrawals``.
What travels is production-sized (``wire_bytes``) but only the substance, the real
KV bytes, is touched by either program; the rest is padding that neither end copies.
This room and ``control`` are the only ones that know sockets.
"""

from testbed_agents.transport.fault import Fault, FrameError, TransferError, reason_of
from testbed_agents.transport.receiver import KvReceiver
from testbed_agents.transport.sender import KvSender, opened, senders_to
from testbed_agents.transport.transfer import INCREMENT, IncomingTransfer, OutgoingTransfer, Receipt

__all__ = [
    "INCREMENT",
    "Fault",
    "FrameError",
    "IncomingTransfer",
    "KvReceiver",
    "KvSender",
    "OutgoingTransfer",
    "Receipt",
    "TransferError",
    "opened",
    "reason_of",
    "senders_to",
]
