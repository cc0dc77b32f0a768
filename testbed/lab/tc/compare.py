"""Field by field: what the compiler wanted against what the kernel says it holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TypeAlias

from testbed.contract.link import LinkSpec
from testbed.errors import FidelityError
from testbed.lab.tc.applied import FieldCheck
from testbed.lab.tc.bpf import delays_of
from testbed.lab.tc.dump import Device, Entry
from testbed.lab.tc.path import Way
from testbed.lab.tc.request import CLSACT, EGRESS, FILTER_INFO, INGRESS, ROOT, sieve_info
from testbed.shaping import gate_program, sieve_program
from testbed.shaping.compile import compile_link
from testbed.shaping.netlink_action import RedirectTo, decode_matchall
from testbed.shaping.netlink_bpf import decode_bpf
from testbed.shaping.netlink_fq import decode_fq
from testbed.shaping.netlink_netem import decode_netem
from testbed.shaping.pacer_program import tag as program_tag
from testbed.shaping.qdisc import Fq, Gate, Netem, Pacer, PacketFilter, Police

ABSENT = "absent"
UNREADABLE = "unreadable"
Filters: TypeAlias = Callable[[int, int], tuple[Entry, ...]]


def check_way(
    way: Way, devices: dict[str, Device], qdiscs: tuple[Entry, ...], filters: Filters
) -> Iterator[FieldCheck]:
    """All checks of one direction."""
    stages = compile_link(way.spec, way.subject)
    police = next((spec for spec in stages.rate if isinstance(spec, Police)), None)
    rate = next((spec for spec in stages.rate if isinstance(spec, Netem)), None)
    delay = next((spec for spec in stages.delay if isinstance(spec, Netem)), None)
    pacer = next((spec for spec in stages.delay if isinstance(spec, Pacer)), None)
    gate = next((spec for spec in stages.delay if isinstance(spec, Gate)), None)
    room = next((spec for spec in stages.delay if isinstance(spec, Fq)), None)
    for device in (way.enters, way.rate, way.crosses, way.leaves):
        state = "up" if device in devices and devices[device].up else "down"
        yield _check(way, device, "device", "up", "up", state)
    yield _redirect(way, way.enters, way.rate, devices, filters)
    yield _redirect(way, way.crosses, way.leaves, devices, filters)
    yield from _police(way, police, devices, filters)
    yield from _netem(way, way.rate, rate, None, devices, qdiscs)
    programs = filters(devices[way.leaves].index, EGRESS) if way.leaves in devices else ()
    first = tuple(entry for entry in programs if entry.info == FILTER_INFO)
    if gate is not None:
        yield _gate(way, gate, first)
    else:
        yield from _pacer(way, pacer, first)
    others = {entry.info: entry for entry in programs if entry.info != FILTER_INFO}
    yield from _sieves(way, stages.sieves, others)
    yield from _netem(way, way.leaves, delay, room, devices, qdiscs)


def _check(
    way: Way, device: str, field: str, requested: str, compiled: str, applied: str
) -> FieldCheck:
    return FieldCheck(
        link=way.link,
        direction=way.direction,
        device=device,
        field=field,
        requested=requested,
        compiled=compiled,
        applied=applied,
        ok=compiled == applied,
    )


def _redirect(
    way: Way, source: str, target: str, devices: dict[str, Device], filters: Filters
) -> FieldCheck:
    names = {device.index: device.name for device in devices.values()}
    action = _action(source, INGRESS, devices, filters)
    seen = names.get(action.index, "?") if isinstance(action, RedirectTo) else str(action)
    return _check(way, source, "redirect", target, target, seen)


def _action(
    device: str, parent: int, devices: dict[str, Device], filters: Filters
) -> Police | RedirectTo | str:
    if device not in devices:
        return ABSENT
    entries = filters(devices[device].index, parent)
    if not entries:
        return ABSENT
    if len(entries) > 1 or entries[0].kind != "matchall":
        return f"{len(entries)} filters: {', '.join(entry.kind for entry in entries)}"
    try:
        return decode_matchall(entries[0].options)
    except FidelityError as error:
        return f"{UNREADABLE}: {error.cause}"


def _police(
    way: Way, wanted: Police | None, devices: dict[str, Device], filters: Filters
) -> Iterator[FieldCheck]:
    action = _action(way.rate, EGRESS, devices, filters)
    if wanted is None:
        yield _check(way, way.rate, "police", "no buffer", ABSENT, str(action))
        return
    found = action if isinstance(action, Police) else None
    for name, requested in (
        ("rate", f"{way.spec.rate_bps} bit/s"),
        ("burst_ns", f"{way.spec.buffer_bytes} bytes"),
        ("largest", "any length"),
    ):
        seen = str(action) if found is None else str(getattr(found, name))
        yield _check(way, way.rate, f"police.{name}", requested, str(getattr(wanted, name)), seen)


def _netem(
    way: Way,
    device: str,
    wanted: Netem | None,
    room: Fq | None,
    devices: dict[str, Device],
    qdiscs: tuple[Entry, ...],
) -> Iterator[FieldCheck]:
    index = devices[device].index if device in devices else -1
    ours = [q for q in qdiscs if q.index == index and q.parent != CLSACT and q.kind != "noqueue"]
    kinds = "+".join(q.kind for q in ours) or ABSENT
    compiled = "+".join(spec.kind for spec in (wanted, room) if spec) or ABSENT
    yield _check(way, device, "qdisc", compiled, compiled, kinds)
    if wanted is None:
        return
    root = next((q for q in ours if q.parent == ROOT and q.kind == Netem.kind), None)
    found = decode_netem(root.options) if root else None
    for field in fields(Netem):
        if field.compare:
            value = str(getattr(wanted, field.name))
            seen = ABSENT if found is None else str(getattr(found, field.name))
            requested = _requested(field.name, way.spec, value)
            yield _check(way, device, f"netem.{field.name}", requested, value, seen)

    child = next((q for q in ours if q.parent != ROOT and q.kind == Fq.kind), None)
    if room is not None:
        waiting = decode_fq(child.options) if child else None
        for field in fields(Fq):
            value = str(getattr(room, field.name))
            seen = ABSENT if waiting is None else str(getattr(waiting, field.name))
            yield _check(way, device, f"fq.{field.name}", "order kept", value, seen)


def _pacer(way: Way, wanted: Pacer | None, entries: tuple[Entry, ...]) -> Iterator[FieldCheck]:
    """The program by its hash, the delays by theirs, both as the kernel has them."""
    device = way.leaves
    # The delay stage of this way shares its device with the other way's entrance only,
    # so any program at its egress is meant for this way.
    if wanted is None:
        kinds = "+".join(entry.kind for entry in entries) or ABSENT
        yield _check(way, device, "departure program", "none", ABSENT, kinds)
        return
    tag, delays = ABSENT, ABSENT
    if len(entries) == 1 and entries[0].kind == Pacer.kind:
        found = decode_bpf(entries[0].options)
        tag, delays = found.tag.hex(), _digest(delays_of(found))
    jitter = way.spec.jitter
    requested = f"{jitter.distribution.value} {jitter.spread_ns} ns" if jitter else "none"
    yield _check(way, device, "departure program", "in order", program_tag(wanted).hex(), tag)
    yield _check(way, device, "departure delays", requested, _digest(wanted.delays_ns), delays)


def _gate(way: Way, wanted: Gate, entries: tuple[Entry, ...]) -> FieldCheck:
    hold = way.spec.hold
    requested = f"{hold.stop_ns} ns of every {hold.each_ns} ns" if hold else "open"
    tag = gate_program.tag(wanted).hex()
    return _check(way, way.leaves, "gate", requested, tag, _tag(entries))


def _sieves(
    way: Way, wanted: tuple[PacketFilter, ...], entries: dict[int, Entry]
) -> Iterator[FieldCheck]:
    """Each by its tag, which covers all that it was asked for; and that there are no others."""
    for asked, one in zip(way.spec.sieves, wanted, strict=True):
        entry = entries.pop(sieve_info(one.number), None)
        seen = _tag(() if entry is None else (entry,))
        tag = sieve_program.tag(one).hex()
        yield _check(way, way.leaves, f"sieve {one.number}", str(asked), tag, seen)
    seen = "+".join(entry.kind for entry in entries.values()) or ABSENT
    yield _check(way, way.leaves, "further programs", "none", ABSENT, seen)


def _tag(entries: tuple[Entry, ...]) -> str:
    if len(entries) != 1 or entries[0].kind != PacketFilter.kind:
        return "+".join(entry.kind for entry in entries) or ABSENT
    return decode_bpf(entries[0].options).tag.hex()


def _digest(delays_ns: tuple[int, ...]) -> str:
    data = b"".join(delay.to_bytes(4, "little") for delay in delays_ns)
    return f"{len(delays_ns)} bins {hashlib.sha256(data).hexdigest()[:16]}"


def _requested(field: str, spec: LinkSpec, compiled: str) -> str:
    """The request behind a netem field, in the request's own words."""
    match field:
        case "latency_ns":
            return f"{spec.delay_ns} ns"
        case "jitter_ns":
            return f"{spec.jitter.spread_ns if spec.jitter else 0} ns"
        case "rate":
            return f"{spec.rate_bps} bit/s" if compiled != "0" else "none in this stage"
        case "loss" | "loss_model":
            return str(spec.loss) if spec.loss else "none"
        case "duplicate":
            return f"{spec.duplicate:g}"
        case "corrupt":
            return f"{spec.corrupt:g}"
        case "limit":
            return f"room for {spec.buffer_bytes} bytes and {spec.delay_ns} ns"
        case _:
            return compiled
