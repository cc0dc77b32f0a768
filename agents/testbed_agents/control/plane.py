"""Messages of the serving plane that are not part of a handoff.

::

    client ─Ask─▶ router ─Assign─▶ P      router ─Prepare─▶ MD      router ─Relay─▶ RLD
                    ▲                        MD ─Matched─▶ P
                    └── Note (P, RLD, MD, client): what has become of a request

    router ─Lost─▶ all      router ─Orphaned─▶ client      client ─Settle─▶ router ─Settled─▶ client
    router ─Seek─▶ who was lost ─Back─▶ router ─Found─▶ all

``req`` is everywhere the job of an attempt (``testbed.contract.attempt``). A prompt travels
as its spans: ``segments[i]`` begins with ``lengths[i]`` emulated tokens.
``relay`` or ``decode`` is empty where that stage takes no part.
"""

from __future__ import annotations

from dataclasses import dataclass

NO_SESSION = 0
"""In place of a session's number plus one: what crosses the wire is never negative."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Client to router: answer this prompt with ``output_tokens`` tokens."""

    req: int
    segments: list[int]
    lengths: list[int]
    output_tokens: int
    session: int
    """Its number plus one, or ``NO_SESSION`` where the request belongs to none."""
    client: str


@dataclass(frozen=True, slots=True)
class Assign:
    """Router to P: compute this prompt and send it to RLD and MD at once."""

    req: int
    segments: list[int]
    lengths: list[int]
    decode: str
    relay: str
    client: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """Router to MD: match this prompt, lock what is there, and tell P."""

    req: int
    segments: list[int]
    lengths: list[int]
    output_tokens: int
    prefill: str
    relay: str
    client: str


@dataclass(frozen=True, slots=True)
class Relay:
    """Router to RLD: decode this prompt until MD takes over."""

    req: int
    segments: list[int]
    lengths: list[int]
    output_tokens: int
    decode: str
    client: str
    prefill: str


@dataclass(frozen=True, slots=True)
class Matched:
    """MD to P: its cache holds this many leading blocks of the prompt."""

    req: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Note:
    """To the router: ``what`` has happened to a request (see ``router.agent``)."""

    req: int
    what: str
    value: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Router to all: this agent is gone; each does its part without it."""

    name: str


@dataclass(frozen=True, slots=True)
class HeldUp:
    """P to RLD: the WAN holds the KV for MD up, so MD will be late."""

    req: int


@dataclass(frozen=True, slots=True)
class Seek:
    """Router to an agent that was lost: forget everything that you were asked, and say Back."""


@dataclass(frozen=True, slots=True)
class Back:
    """To the router: this agent can be reached, and works for nobody."""


@dataclass(frozen=True, slots=True)
class Found:
    """Router to all: this agent was lost and is back; what it was asked before is over."""

    name: str


@dataclass(frozen=True, slots=True)
class Orphaned:
    """Router to client: the answer's RLD is gone, ``decode`` goes on (empty: nobody does)."""

    req: int
    decode: str


@dataclass(frozen=True, slots=True)
class Settle:
    """Client to router: all requests have ended; say when nobody works for any of them."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Router to client: nothing of its requests is under way."""
