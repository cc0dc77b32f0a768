"""Messages of the serving plane that are not part of a handoff.

::

    client ─Ask─▶ router ─Assign─▶ P      router ─Prepare─▶ MD      router ─Relay─▶ RLD
                    ▲                        MD ─Matched─▶ P
                    └── Note (P, RLD, MD): what has become of a request

A prompt travels as its spans: ``segments[i]`` begins with ``lengths[i]`` emulated tokens.
``relay`` or ``decode`` is empty where that stage takes no part.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ask:
    """Client to router: answer this prompt with ``output_tokens`` tokens."""

    req: int
    segments: list[int]
    lengths: list[int]
    output_tokens: int
    session: int
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
