"""One request at MD: what it holds, from the router's word to its release."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from testbed_agents.control.plane import Prepare
from testbed_agents.handoff.main import MainPart
from testbed_agents.serving.held import Held


@dataclass(slots=True)
class Answer:
    """One request at MD."""

    prepare: Prepare
    held: Held
    part: MainPart
    began: bool = False
    over: bool = False
    """Whether RLD's part is over: this side has emitted."""
    extended: int = 0
    """Tokens of RLD whose KV was computed here."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when RLD has said where its part ends, or never will."""
