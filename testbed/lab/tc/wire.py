"""A wire namespace: patches its links together, shapes them and reads everything back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from pyroute2 import IPRoute

from testbed.contract.network import Link
from testbed.errors import FidelityError, LabError
from testbed.lab.namespace import entered
from testbed.lab.tc.applied import AppliedQdisc, FieldCheck
from testbed.lab.tc.bpf import loaded
from testbed.lab.tc.compare import check_way
from testbed.lab.tc.counters import LinkCounters, count
from testbed.lab.tc.dump import Device, Reader
from testbed.lab.tc.inplace import steps_between
from testbed.lab.tc.path import Way, ways
from testbed.lab.tc.programs import Programs
from testbed.lab.tc.request import (
    CHILD_HANDLE,
    CLSACT,
    CLSACT_HANDLE,
    EGRESS,
    FILTER_INFO,
    INGRESS,
    ROOT,
    ROOT_HANDLE,
    Command,
    Place,
    change,
    delete_if_there,
    send,
    sieve_info,
)
from testbed.shaping import gate_program, sieve_program
from testbed.shaping.compile import compile_link
from testbed.shaping.netlink_action import RedirectTo, encode_police, encode_redirect
from testbed.shaping.netlink_bpf import encode_bpf
from testbed.shaping.netlink_fq import encode_fq
from testbed.shaping.netlink_netem import decode_netem, encode_netem
from testbed.shaping.qdisc import Fq, Gate, Netem, Pacer, PacketFilter, Police

_CARRIER_STEP_S, _CARRIER_MOST_S = 0.000_1, 5.0


class Wire:
    """Two netlink sockets in one wire namespace; many links share them.

    ``path`` is a namespace file such as ``/proc/<pid>/ns/net`` or ``/run/netns/wan1``. Programs
    may be kept by somebody who outlives the wire.
    """

    def __init__(self, path: str, programs: Programs | None = None) -> None:
        self.path = path
        self._own = Programs() if programs is None else None
        self._programs = programs or self._own or Programs()
        with entered(path):
            self._socket = IPRoute()
        self._reader = Reader(path)

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close both sockets; what was applied stays."""
        if self._own is not None:
            self._own.close()
        self._reader.close()
        self._socket.close()

    def apply(self, link: Link) -> tuple[AppliedQdisc, ...]:
        """Patch and shape both directions, replacing whatever was there.

        Counters and seeded generators start anew. Raises PlanError for a link that
        cannot be, LabError where the kernel refuses.
        """
        stages = [(way, compile_link(way.spec, way.subject)) for way in ways(link)]
        devices = self._reader.devices()
        for way in ways(link):
            self._clear(_index(devices, way.rate), _index(devices, way.leaves))
        applied: list[AppliedQdisc] = []
        for way, stage in stages:
            applied.append(self._redirect(way, way.enters, way.rate, devices))
            applied.append(self._redirect(way, way.crosses, way.leaves, devices))
            for spec in stage.rate:
                applied.append(self._place(way, way.rate, spec, devices))
            for spec in (*stage.delay, *stage.sieves):
                applied.append(self._place(way, way.leaves, spec, devices))
        return tuple(applied)

    def read_back(self, link: Link) -> tuple[FieldCheck, ...]:
        """Every field of both directions: requested, compiled, applied; never raises for a
        difference (see ``verify``)."""
        devices, qdiscs = self._reader.devices(), self._reader.qdiscs()
        checks: list[FieldCheck] = []
        for way in ways(link):
            checks.extend(check_way(way, devices, qdiscs, self._reader.filters))
        return tuple(checks)

    def verify(self, link: Link) -> tuple[FieldCheck, ...]:
        """Like ``read_back``, but a difference raises FidelityError naming every one."""
        checks = self.read_back(link)
        wrong = [check for check in checks if not check.ok]
        if wrong:
            listed = "; ".join(
                f"{c.direction.value} {c.device} {c.field}: compiled {c.compiled}, "
                f"applied {c.applied}"
                for c in wrong
            )
            raise FidelityError("verify link", link.name, listed, "something else changed the wire")
        return checks

    def counters(self, links: Sequence[Link]) -> dict[str, LinkCounters]:
        """Counters of many links from one dump, by link name."""
        return count(links, self._reader.devices(), self._reader.qdiscs())

    def change(self, old: Link, new: Link) -> bool:
        """Makes ``old`` into ``new`` in place: what is queued or under way stays.

        Returns:
            False where that cannot be; nothing was changed then.
        """
        steps = steps_between(old, new)
        if steps is None:
            return False
        devices = self._reader.devices()
        for step in steps:
            index = _index(devices, step.device)
            if isinstance(step.spec, Netem):
                place = Place(index, ROOT_HANDLE, ROOT)
                change(self._socket, place, Netem.kind, encode_netem(step.spec))
            elif isinstance(step.spec, PacketFilter):
                if step.away:
                    place = Place(index, 0, EGRESS, sieve_info(step.spec.number))
                    send(self._socket, Command.DELETE_FILTER, place, step.spec.kind, b"")
                else:
                    self._place(step.way, step.device, step.spec, devices)
            else:
                kind = "matchall" if isinstance(step.spec, Police) else step.spec.kind
                place = Place(index, 0, EGRESS, FILTER_INFO)
                send(self._socket, Command.DELETE_FILTER, place, kind, b"")
                self._place(step.way, step.device, step.spec, devices)
        return True

    def set_inner(self, link: Link, up: bool) -> None:
        """Lowers or raises the pair between both stages.

        Lowered, nothing passes: the entrance redirects to a device that is down, which drops.
        Both ends of the link keep their carrier, as with a cable that is cut far away. Returns
        when the pair transmits again.

        Raises:
            LabError: the pair does not come up.
        """
        devices = self._reader.devices()
        for device in link.inner:
            if device not in devices:
                raise LabError("change a link", link.name, f"the wire has no device {device}")
            state = "up" if up else "down"
            self._socket.link("set", index=devices[device].index, state=state)
        if up:
            self._wait_for_carrier(link)

    def _wait_for_carrier(self, link: Link) -> None:
        until = time.monotonic() + _CARRIER_MOST_S
        while time.monotonic() < until:
            devices = self._reader.devices()
            if all(devices[device].carries for device in link.inner):
                return
            time.sleep(_CARRIER_STEP_S)
        raise LabError("mend a link", link.name, "its devices have no carrier although they are up")

    def reseed(self, way: Way) -> None:
        """Start the delay stage's seeded generator anew, from the seed that is applied.

        The options are those the kernel reports, so a wrong configuration stays wrong.
        """
        index = _index(self._reader.devices(), way.leaves)
        for entry in self._reader.qdiscs():
            if entry.index == index and entry.parent == ROOT and entry.kind == Netem.kind:
                options = encode_netem(decode_netem(entry.options))
                change(self._socket, Place(index, entry.handle, ROOT), Netem.kind, options)

    def replace_root(self, device: str, options: bytes) -> None:
        """Put a netem with these very options at the root of a device."""
        index = _index(self._reader.devices(), device)
        delete_if_there(self._socket, Place(index, 0, ROOT))
        place = Place(index, ROOT_HANDLE, ROOT)
        send(self._socket, Command.ADD_QDISC, place, Netem.kind, options)

    def _clear(self, *indexes: int) -> None:
        for index in indexes:
            delete_if_there(self._socket, Place(index, 0, ROOT))
            clsact = Place(index, CLSACT_HANDLE, CLSACT)
            delete_if_there(self._socket, clsact)
            send(self._socket, Command.ADD_QDISC, clsact, "clsact", b"")

    def _redirect(
        self, way: Way, source: str, target: str, devices: dict[str, Device]
    ) -> AppliedQdisc:
        options = encode_redirect(RedirectTo(_index(devices, target)))
        place = Place(_index(devices, source), 0, INGRESS, FILTER_INFO)
        send(self._socket, Command.ADD_FILTER, place, "matchall", options)
        return _applied(way, source, "mirred", options)

    def _place(
        self, way: Way, device: str, spec: object, devices: dict[str, Device]
    ) -> AppliedQdisc:
        index = _index(devices, device)
        match spec:
            case Police():
                options = encode_police(spec)
                place = Place(index, 0, EGRESS, FILTER_INFO)
                send(self._socket, Command.ADD_FILTER, place, "matchall", options)
            case Netem():
                options = encode_netem(spec)
                self.replace_root(device, options)
            case Fq():
                options = encode_fq(spec)
                place = Place(index, CHILD_HANDLE, ROOT_HANDLE | 1)
                send(self._socket, Command.ADD_QDISC, place, Fq.kind, options)
            case Pacer():
                with loaded(spec) as descriptor:
                    options = encode_bpf(descriptor)
                    place = Place(index, 0, EGRESS, FILTER_INFO)
                    send(self._socket, Command.ADD_FILTER, place, Pacer.kind, options)
            case Gate():
                with self._programs.gate(device, spec) as descriptor:
                    options = encode_bpf(descriptor, gate_program.NAME)
                    place = Place(index, 0, EGRESS, FILTER_INFO)
                    send(self._socket, Command.ADD_FILTER, place, spec.kind, options)
            case PacketFilter():
                with self._programs.sieve(device, spec) as descriptor:
                    options = encode_bpf(descriptor, sieve_program.NAME)
                    place = Place(index, 0, EGRESS, sieve_info(spec.number))
                    send(self._socket, Command.ADD_FILTER, place, spec.kind, options)
            case _:
                raise LabError("place a qdisc", way.subject, f"{spec!r} has no place in a wire")
        return _applied(way, device, spec.kind, options)


def apply_link(path: str, link: Link) -> tuple[AppliedQdisc, ...]:
    """Patch and shape one link in the wire namespace at ``path``."""
    with Wire(path) as wire:
        return wire.apply(link)


def read_back(path: str, link: Link) -> tuple[FieldCheck, ...]:
    """Compare one link field by field; raises FidelityError where anything differs."""
    with Wire(path) as wire:
        return wire.verify(link)


def _index(devices: dict[str, Device], name: str) -> int:
    if name not in devices:
        raise LabError("shape a link", name, "the wire has no such device")
    if not devices[name].up:
        raise LabError("shape a link", name, "the device is down", "bring it up before shaping")
    return devices[name].index


def _applied(way: Way, device: str, kind: str, options: bytes) -> AppliedQdisc:
    return AppliedQdisc(
        link=way.link, direction=way.direction, device=device, kind=kind, options=options.hex()
    )
