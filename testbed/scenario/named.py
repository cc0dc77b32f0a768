"""Topologies and tc profiles, looked up by name."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from testbed.contract.link import LinkSpec
from testbed.errors import ScenarioError
from testbed.scenario.data import DataKind, find
from testbed.scenario.document import Document, read_document
from testbed.scenario.faults import check, in_order
from testbed.scenario.linkspec import compose
from testbed.scenario.profile import LinkChoice, Profile
from testbed.scenario.topology import Topology

ModelT = TypeVar("ModelT", bound=BaseModel)


def load_topology(name: str, beside: Path | None = None) -> Topology:
    """The topology ``name``. Raises ScenarioError."""
    document = read_document(find(DataKind.TOPOLOGIES, name, beside))
    return _named(document, name, check(document, Topology))


def load_profile(name: str, beside: Path | None = None) -> Profile:
    """The tc profile ``name``, which must be possible on its own. Raises ScenarioError."""
    document = read_document(find(DataKind.TC_PROFILES, name, beside))
    profile = _named(document, name, check(document, Profile))
    spec = compose(profile, LinkChoice())
    if not isinstance(spec, LinkSpec):
        faults = (document.fault((reason.key,), reason.text) for reason in spec)
        raise ScenarioError(document.name, in_order(faults))
    return profile


def _named(document: Document, name: str, loaded: ModelT) -> ModelT:
    if document.data.get("name") != name:
        fault = document.fault(("name",), f"must be {name!r}, as the file is called")
        raise ScenarioError(document.name, (fault,))
    return loaded
