"""The part of the Compose file format that is used here, as values, and their YAML.

Only keys that Compose 2.20 knows. Reference: the Compose Specification, chapters services
and networks.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping

from pydantic import Field
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from testbed.contract.record import Record


class Address(Record):
    """What a container is in one network."""

    ipv4_address: str


class Bind(Record):
    """A host folder in a container."""

    type: str = "bind"
    source: str
    target: str
    read_only: bool = False


class Need(Record):
    """What has to be true of another service before this one starts.

    ``required`` false: only where that service belongs to a profile that was chosen.
    """

    condition: str
    required: bool | None = None


class Build(Record):
    """How an image is made."""

    context: str
    dockerfile: str
    target: str
    args: dict[str, str]


class Health(Record):
    """When a container counts as healthy."""

    test: tuple[str, ...]
    interval: str
    timeout: str
    start_period: str
    retries: int


class Service(Record):
    """One container. Field names are Compose's."""

    image: str
    build: Build | None = None
    pull_policy: str | None = None
    profiles: tuple[str, ...] = ()
    command: tuple[str, ...]
    user: str
    cap_drop: tuple[str, ...] = ("ALL",)
    cap_add: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ("no-new-privileges:true",)
    read_only: bool = True
    tmpfs: tuple[str, ...] = ("/tmp:size=64m",)
    environment: dict[str, str] = Field(default_factory=dict)
    sysctls: dict[str, str] = Field(default_factory=dict)
    mac_address: str | None = None
    networks: dict[str, Address] = Field(default_factory=dict)
    network_mode: str | None = None
    volumes: tuple[Bind | str, ...] = ()
    """The short form, ``source:target``, makes a folder that is missing."""
    mem_limit: int
    pids_limit: int
    stop_grace_period: str = "10s"
    depends_on: dict[str, Need] = Field(default_factory=dict)
    healthcheck: Health | None = None
    labels: dict[str, str] = Field(default_factory=dict)


class Pool(Record):
    """Addresses of a network."""

    subnet: str
    gateway: str


class Ipam(Record):
    """Compose's wrapper of ``Pool``."""

    config: tuple[Pool, ...]


class BridgeNetwork(Record):
    """One Docker network."""

    driver: str = "bridge"
    driver_opts: dict[str, str]
    ipam: Ipam
    labels: dict[str, str] = Field(default_factory=dict)


class ComposeFile(Record):
    """A whole Compose file."""

    name: str
    services: dict[str, Service]
    networks: dict[str, BridgeNetwork]


def compose_yaml(file: ComposeFile, heading: str) -> str:
    """The file as YAML, with ``heading`` as comment lines on top."""
    return yaml_of(plain(file), heading)


def plain(file: ComposeFile) -> dict[str, object]:
    """The file as lists and dictionaries, without what is empty."""
    value = _plain(file.model_dump(exclude_none=True))
    return value if isinstance(value, dict) else {}


def yaml_of(value: Mapping[str, object], heading: str) -> str:
    """A Compose file's content as YAML, with ``heading`` as comment lines on top."""
    stream = io.StringIO()
    yaml = YAML(pure=True)  # keeps the order of keys
    yaml.default_flow_style = False
    yaml.width = 110
    yaml.dump(value, stream)
    comment = "".join(f"# {line}".rstrip() + "\n" for line in heading.splitlines())
    return comment + stream.getvalue()


_SAFE = re.compile(r"[A-Za-z_./][\w./-]*")
_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


def _plain(value: object) -> object:
    """Tuples to lists, empty collections left out: what a reader would write.

    Strings that an older YAML takes for something else (``0:0``, ``no``) are quoted.
    """
    if isinstance(value, str) and (not _SAFE.fullmatch(value) or value.lower() in _WORDS):
        return DoubleQuotedScalarString(value)
    if isinstance(value, dict):
        kept = {key: _plain(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ({}, [])}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
