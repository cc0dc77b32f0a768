"""All wires of a network: apply every link, verify every link, count every link."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from testbed.contract.network import Link, Network
from testbed.lab.tc import FieldCheck, LinkCounters, Wire


class Wires:
    """One open ``Wire`` per wire namespace. Use as a context manager."""

    def __init__(self, network: Network, paths: Mapping[str, str]) -> None:
        self._links: dict[str, list[Link]] = {}
        for link in network.links:
            self._links.setdefault(link.wire, []).append(link)
        self._wires = {name: Wire(paths[name]) for name in self._links}

    def __enter__(self) -> Wires:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for wire in self._wires.values():
            wire.close()

    def apply(self) -> None:
        """Patches and shapes every link."""
        for name, links in self._links.items():
            for link in links:
                self._wires[name].apply(link)

    def read_back(self) -> tuple[FieldCheck, ...]:
        """Every field of every link: requested, compiled, applied."""
        return tuple(
            check
            for name, links in self._links.items()
            for link in links
            for check in self._wires[name].read_back(link)
        )

    def counters(self) -> dict[str, LinkCounters]:
        """Counters by link name; one dump per namespace."""
        found: dict[str, LinkCounters] = {}
        for name, links in self._links.items():
            found.update(self._wires[name].counters(links))
        return found
