"""How a node stands in the network, in words: its devices, addresses and routes.

Two of these compared say what was lost and what was added; carriers and neighbours are left out,
because they may change without anybody having touched the node.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

from testbed.lab.tc.dump import Reader
from testbed.shaping.attribute import table

Standing = frozenset[str]

_RTM_GETADDR, _RTM_GETROUTE = 22, 26
_ADDRESS = struct.Struct("=BBBBI")
"""struct ifaddrmsg: family, prefix length, flags, scope, index."""
_ROUTE = struct.Struct("=BBBBBBBBI")
"""struct rtmsg: family, length of dst and src, tos, table, protocol, scope, type, flags."""
_HOP = struct.Struct("=HBBi")
"""struct rtnexthop: length, flags, weight - 1, index."""
_LOCAL = 2
_DST, _OIF, _GATEWAY, _MULTIPATH = 1, 4, 5, 9
_UNICAST, _MAIN = 1, 254


def standing_of(path: str) -> Standing:
    """The standing of whoever has the network namespace at ``path``."""
    with Reader(path) as reader:
        devices = reader.devices()
        names = {device.index: device.known_as or device.name for device in devices.values()}
        lines = [
            f"device {names[d.index]} {'up' if d.up else 'down'}, mtu {d.mtu}, {d.mac}"
            for d in devices.values()
        ]
        for body in reader.dump(_RTM_GETADDR, _ADDRESS.pack(socket.AF_INET, 0, 0, 0, 0)):
            _, length, _, _, index = _ADDRESS.unpack_from(body)
            address = _dotted(table(body, _ADDRESS.size).get(_LOCAL, b""))
            lines.append(f"address {address}/{length} on {names.get(index, '?')}")
        for body in reader.dump(_RTM_GETROUTE, _ROUTE.pack(socket.AF_INET, *([0] * 8))):
            lines.extend(_route(body, names))
    return frozenset(lines)


def changed(before: Standing, now: Standing) -> str:
    """What differs, in words; empty where nothing does."""
    lost = [f"lost: {line}" for line in sorted(before - now)]
    new = [f"new: {line}" for line in sorted(now - before)]
    return "; ".join((*lost, *new))


def _route(body: bytes, names: dict[int, str]) -> Iterator[str]:
    _, length, _, _, number, _, _, kind, _ = _ROUTE.unpack_from(body)
    if (kind, number) != (_UNICAST, _MAIN):
        return
    found = table(body, _ROUTE.size)
    target = f"{_dotted(found[_DST])}/{length}" if _DST in found else "default"
    for via, index, weight in _hops(found):
        device = names.get(index, "?")
        yield f"route {target}{f' via {via}' if via else ''} on {device}, weight {weight}"


def _hops(found: dict[int, bytes]) -> Iterator[tuple[str, int, int]]:
    """Gateway (empty: none), index of the device and weight of each hop."""
    if _MULTIPATH not in found:
        (index,) = struct.unpack("=I", found.get(_OIF, bytes(4)))
        yield _dotted(found.get(_GATEWAY, b"")), index, 1
        return
    data = found[_MULTIPATH]
    while len(data) >= _HOP.size:
        length, _, more, index = _HOP.unpack_from(data)
        inner = table(data[:length], _HOP.size)
        yield _dotted(inner.get(_GATEWAY, b"")), index, more + 1
        data = data[length + (-length % 4) :]


def _dotted(address: bytes) -> str:
    return ".".join(str(part) for part in address)
