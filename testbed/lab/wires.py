"""All wires of a network: apply, verify, count and change every link.

A link's ``LinkSpec`` is what it is meant to be *now*: a fault may have changed it. A wire may be
*away*: its container ended, and nothing passes until it is back and was taken up again.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from testbed.contract.link import LinkSpec
from testbed.contract.network import Link, Network
from testbed.contract.sieve import Hold, Sieve
from testbed.errors import FidelityError, LabError
from testbed.lab.tc import FieldCheck, LinkCounters, Wire
from testbed.lab.tc.programs import Programs


class Wires:
    """One open ``Wire`` per wire namespace. Use as a context manager."""

    def __init__(self, network: Network, paths: Mapping[str, str]) -> None:
        self._links = {link.name: link for link in network.links}
        self._cut: set[str] = set()
        self._programs = Programs()
        self._wires = {
            name: Wire(paths[name], self._programs)
            for name in dict.fromkeys(self._owners().values())
        }
        self._held: dict[str, int] = {}
        """Frames that the gates of a link had held when a hold began there."""

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
        self._programs.close()

    def _owners(self) -> dict[str, str]:
        return {link.name: link.wire for link in self._links.values()}

    def links_of(self, wire: str) -> tuple[Link, ...]:
        """The links that pass through a wire, as they are meant to be now; none of a router."""
        return tuple(link for link in self._links.values() if link.wire == wire)

    def link(self, name: str) -> Link:
        """A link as it is meant to be now.

        Raises:
            LabError: there is none of that name.
        """
        if name not in self._links:
            raise LabError(
                "find a link", name, "the network has none of that name",
                f"it has {', '.join(self._links)}",
            )  # fmt: skip
        return self._links[name]

    def apply(self) -> None:
        """Patches and shapes every link."""
        for link in self._links.values():
            self._wires[link.wire].apply(link)

    def read_back(self) -> tuple[FieldCheck, ...]:
        """Every field of every link: requested, compiled, applied."""
        return tuple(check for name in self._wires for check in self.read_wire(name))

    def read_wire(self, name: str) -> tuple[FieldCheck, ...]:
        """Every field of every link of one wire; a link that was cut is meant to be down."""
        return tuple(
            self._meant(link, check)
            for link in self.links_of(name)
            for check in self._wires[name].read_back(link)
        )

    def _meant(self, link: Link, check: FieldCheck) -> FieldCheck:
        inside = check.field == "device" and check.device in link.inner
        if link.name not in self._cut or not inside:
            return check
        words = {"requested": "cut", "compiled": "down", "ok": check.applied == "down"}
        return check.model_copy(update=words)

    def counters(self) -> dict[str, LinkCounters]:
        """Counters by link name, of every wire that is there; one dump per namespace."""
        found: dict[str, LinkCounters] = {}
        for name, wire in self._wires.items():
            found.update(wire.counters(self.links_of(name)))
        return found

    def leave(self, name: str) -> None:
        """Lets a wire that is away go; what it held is gone."""
        self._wires.pop(name).close()

    def take_up(self, name: str, path: str) -> bool:
        """Takes up a wire that is back and has shaped its links as the plan says.

        Returns:
            Whether it had to be shaped once more, because its links are meant to be otherwise.

        Raises:
            FidelityError: a field is not as it is meant to be.
        """
        self._wires[name] = wire = Wire(path, self._programs)
        anew = any(not check.ok for check in self.read_wire(name))
        if anew:
            for link in self.links_of(name):
                wire.apply(link)
                if link.name in self._cut:
                    wire.set_inner(link, up=False)
            refuse_differences(name, self.read_wire(name))
        return anew

    def reshape(self, name: str, forward: LinkSpec, backward: LinkSpec) -> bool:
        """Makes a link another one.

        Returns:
            Whether what was queued or under way stayed.

        Raises:
            LabError: its frames would differ, or the kernel refuses.
            FidelityError: a field is not as it is meant to be afterwards.
        """
        old = self.link(name)
        new = old.model_copy(update={"forward": forward, "backward": backward})
        for before, after in ((old.forward, forward), (old.backward, backward)):
            if (before.mtu, before.superframe_bytes) != (after.mtu, after.superframe_bytes):
                raise LabError(
                    "reshape a link", name, "its MTU or superframes would differ, which devices "
                    "of nodes have, too", "keep them",
                )  # fmt: skip
        wire = self._there(old)
        kept = wire.change(old, new)
        if not kept:
            wire.apply(new)
        self._links[name] = new
        refuse_differences(name, self.read_wire(old.wire))
        return kept

    def count_from_now(self, name: str, effect: Sieve | Hold) -> None:
        """What a fault of single packets hits on a link counts from nothing."""
        devices = self._leaving(name)
        if isinstance(effect, Sieve):
            self._programs.forget(devices, effect.number)
        else:
            self._held[name] = self._programs.held(devices)

    def hits(self, name: str, effect: Sieve | Hold) -> int:
        """How many frames it hit since then, both ways; those of a filter that is gone as well."""
        devices = self._leaving(name)
        if isinstance(effect, Sieve):
            return self._programs.hits(devices, effect.number)
        return self._programs.held(devices) - self._held.get(name, 0)

    def _leaving(self, name: str) -> tuple[str, str]:
        link = self.link(name)
        return link.a.wire_device, link.b.wire_device

    def cut(self, name: str) -> None:
        """Lets nothing pass; what is queued is lost, what left the queue still arrives.

        Raises:
            FidelityError: it is not down afterwards.
        """
        self._set(name, up=False)

    def mend(self, name: str) -> None:
        """Lets everything pass again.

        Raises:
            FidelityError: it is not up afterwards.
        """
        self._set(name, up=True)

    def _set(self, name: str, up: bool) -> None:
        link = self.link(name)
        self._there(link).set_inner(link, up)
        if up:
            self._cut.discard(name)
        else:
            self._cut.add(name)
        refuse_differences(name, self.read_wire(link.wire))

    def _there(self, link: Link) -> Wire:
        if link.wire not in self._wires:
            raise LabError("change a link", link.name, f"its wire {link.wire} is away")
        return self._wires[link.wire]


def differences(checks: tuple[FieldCheck, ...]) -> str:
    """What is not as it is meant to be, in words: how many fields, and the first three."""
    wrong = [check for check in checks if not check.ok]
    named = "; ".join(
        f"{c.link} {c.direction.value} {c.device}: {c.field} is {c.applied} instead of {c.compiled}"
        for c in wrong[:3]
    )
    return f"{len(wrong)} of {len(checks)} fields differ: {named}" if wrong else ""


def refuse_differences(subject: str, checks: tuple[FieldCheck, ...]) -> None:
    """Raises FidelityError where a field is not as it is meant to be."""
    how = differences(checks)
    if how:
        raise FidelityError(
            "change a link", subject, how, "something else changed the wire: leave it alone"
        )
