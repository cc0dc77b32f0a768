"""How one answer passes from RLD to MD without a gap, a repetition or a second author.

``relay``, ``main`` and ``client`` are the parts of the three sides, ``message`` what they
tell each other, ``action`` what they ask of their agents. This room is pure: no I/O, no
clock, no socket, no model.
"""

from testbed_agents.handoff.action import (
    Action,
    Actions,
    Feed,
    Publish,
    Release,
    Send,
    SendIncrement,
)
from testbed_agents.handoff.choice import HandoffChoice, cap_tokens, lead_tokens
from testbed_agents.handoff.client import ClientPart, Delivered
from testbed_agents.handoff.main import MainPart
from testbed_agents.handoff.message import Message, Peer
from testbed_agents.handoff.relay import RelayPart

__all__ = [
    "Action", "Actions", "ClientPart", "Delivered", "Feed", "HandoffChoice", "MainPart",
    "Message", "Peer", "Publish", "RelayPart", "Release", "Send", "SendIncrement",
    "cap_tokens", "lead_tokens",
]  # fmt: skip
