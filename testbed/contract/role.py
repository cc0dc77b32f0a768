"""Roles of nodes and agents."""

from __future__ import annotations

from enum import StrEnum


class NodeKind(StrEnum):
    """What a namespace is for."""

    AGENT = "agent"
    ROUTER = "router"
    WIRE = "wire"


class Role(StrEnum):
    """What an agent does."""

    CLIENT = "client"
    ROUTER = "router"
    PREFILL = "prefill"
    RELAY = "relay"
    DECODE = "decode"
