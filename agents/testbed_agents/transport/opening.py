"""Why a connection could not be opened: from an errno to the name that is told. Pure."""

from __future__ import annotations

import errno

from testbed.errors import ProtocolError
from testbed_agents.pool import OpenError, Refusal

_REASONS = {
    # connect(2): the port is in use or rests in TIME_WAIT; it is the one that has rested longest,
    # so that no other can be had either
    errno.EADDRNOTAVAIL: Refusal.NO_PORT,
    errno.EADDRINUSE: Refusal.NO_PORT,
    errno.EMFILE: Refusal.NO_DESCRIPTOR,
    errno.ENFILE: Refusal.NO_DESCRIPTOR,
    errno.ECONNREFUSED: Refusal.REFUSED,
    errno.ECONNRESET: Refusal.REFUSED,
    errno.ECONNABORTED: Refusal.REFUSED,
    errno.EPIPE: Refusal.REFUSED,
    errno.EHOSTUNREACH: Refusal.UNREACHABLE,
    errno.ENETUNREACH: Refusal.UNREACHABLE,
    errno.EHOSTDOWN: Refusal.UNREACHABLE,
    errno.ENETDOWN: Refusal.UNREACHABLE,
    errno.ETIMEDOUT: Refusal.TIMEOUT,
}


def not_opened(peer: str, error: OSError | ProtocolError) -> OpenError | None:
    """The refusal that ``error`` means, with its name; None where it is none but a defect.

    A receiver that ends the connection before it has answered the hello refuses it.
    """
    if isinstance(error, ProtocolError):
        return OpenError(Refusal.REFUSED, peer, error.cause)
    reason = _REASONS.get(error.errno or 0)
    return None if reason is None else OpenError(reason, peer, str(error))
