"""An agent that was lost to all others, because it was cut off or stood still, comes back."""

from __future__ import annotations

from testbed_agents.control.plane import Back
from testbed_agents.runtime import Runtime


def reappear(runtime: Runtime) -> None:
    """Says so to the router, behind the agent's having forgotten what it was asked.

    What waits for others is from before, and nobody wants it; the connections to them may have
    gone so long without an answer that the kernel hardly tries any more.
    """
    for peer in runtime.config.peers:
        runtime.mailbox.renew(peer.name)
    runtime.mailbox.send(runtime.router, Back())
