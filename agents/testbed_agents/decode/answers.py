"""All requests of one MD: at work, refused while RLD goes on alone, or not yet announced. Pure."""

from __future__ import annotations

from testbed_agents.decode.answer import Answer
from testbed_agents.handoff.message import Message


class Answers:
    """Who is where; what came too early waits for its announcement."""

    def __init__(self) -> None:
        self.active: dict[int, Answer] = {}
        self._orphans: dict[int, Answer] = {}
        """Refused here, all given back, while RLD may still end the answer alone."""
        self._early: dict[int, list[tuple[Message, str]]] = {}

    def find(self, req: int) -> Answer | None:
        """The request, unless it is over or unknown."""
        return self.active.get(req) or self._orphans.get(req)

    def every(self) -> tuple[Answer, ...]:
        """Those at work, then the refused ones."""
        return (*self.active.values(), *self._orphans.values())

    def wait(self, req: int, message: Message, sender: str) -> None:
        """A message for a request that was not announced yet."""
        self._early.setdefault(req, []).append((message, sender))

    def waited(self, req: int) -> list[tuple[Message, str]]:
        """What came before the announcement, in order; once."""
        return self._early.pop(req, [])

    def close(self, req: int) -> None:
        """It has given everything back; RLD may still end it."""
        answer = self.active.pop(req)
        answer.settled.set()
        if answer.part.orphaned:
            self._orphans[req] = answer

    def forget(self, req: int) -> None:
        """RLD's last word on a refused one, or its death."""
        self._orphans.pop(req, None)
