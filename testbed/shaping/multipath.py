"""Which of several equal legs a connection takes: a model of Linux's multipath hash (6.11 on).

A router with ``fib_multipath_hash_policy=3``, the fields of ``plan.sysctl`` and a seed of its own
hashes addresses, protocol and ports of each packet. Both directions of a connection have one
hash: the kernel orders addresses and ports first (``__flow_hash_consistentify``). Sources:
``fib_multipath_custom_hash_skb`` (net/ipv4/route.c), ``flow_hash_from_keys_seed``
(net/core/flow_dissector.c), ``fib_select_multipath`` (net/ipv4/fib_semantics.c).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from ipaddress import IPv4Address

_TCP = 6
_M32, _M64 = (1 << 32) - 1, (1 << 64) - 1
# struct flow_keys from ``basic`` on: n_proto, ip_proto, tags, vlan, cvlan, keyid │ ports │ icmp │
# IPv4 addresses and the padding behind the union. Only protocol, ports and addresses are set.
_KEYS = struct.Struct("<2xBx24x2H4x2I4x")


def hop_index(
    source: tuple[str, int], target: tuple[str, int], seed: int, weights: Sequence[int]
) -> int:
    """Position of the hop that a TCP packet from ``source`` to ``target`` takes.

    Args:
        source: IPv4 address and port; ``target`` likewise.
        seed: ``net.ipv4.fib_multipath_hash_seed`` of the router, not 0.
        weights: of the route's hops, in their order.
    """
    chosen = multipath_hash(source, target, seed)
    total, sum_so_far = sum(weights), 0
    for index, weight in enumerate(weights):
        sum_so_far += weight
        if chosen <= ((sum_so_far << 31) + total // 2) // total - 1:  # DIV_ROUND_CLOSEST_ULL
            return index
    return 0


def multipath_hash(source: tuple[str, int], target: tuple[str, int], seed: int) -> int:
    """What the router compares with its hops' bounds, 31 bits."""
    addresses = [_as_read(IPv4Address(host).packed) for host, _ in (source, target)]
    ports = [_as_read(port.to_bytes(2, "big")) for _, port in (source, target)]
    data = _KEYS.pack(_TCP, *sorted(ports), *sorted(addresses))
    half = seed << 32 | seed
    outer = _siphash(data, half, half) & _M32 or 1
    return _jhash_2words(outer, 0) >> 1


def _as_read(network_order: bytes) -> int:
    """A field in network order, as a little-endian kernel compares it."""
    return int.from_bytes(network_order, "little")


def _siphash(data: bytes, key0: int, key1: int) -> int:
    """SipHash-2-4 of whole words (lib/siphash.c)."""
    state = [
        0x736F6D6570736575 ^ key0, 0x646F72616E646F6D ^ key1,
        0x6C7967656E657261 ^ key0, 0x7465646279746573 ^ key1,
    ]  # fmt: skip
    words = [*struct.unpack(f"<{len(data) // 8}Q", data), len(data) << 56 & _M64]
    for word in words:
        state[3] ^= word
        _round(state)
        _round(state)
        state[0] ^= word
    state[2] ^= 0xFF
    for _ in range(4):
        _round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _round(state: list[int]) -> None:
    a, b, c, d = state
    a = (a + b) & _M64
    b = _left(b, 13, 64) ^ a
    a = _left(a, 32, 64)
    c = (c + d) & _M64
    d = _left(d, 16, 64) ^ c
    a = (a + d) & _M64
    d = _left(d, 21, 64) ^ a
    c = (c + b) & _M64
    b = _left(b, 17, 64) ^ c
    c = _left(c, 32, 64)
    state[:] = a, b, c, d


def _jhash_2words(first: int, second: int) -> int:
    """``jhash_2words(a, b, 0)`` of include/linux/jhash.h."""
    start = 0xDEADBEEF + (2 << 2)
    a, b, c = (first + start) & _M32, (second + start) & _M32, start & _M32
    for target, source, bits in ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4),
                                 (1, 0, 14), (2, 1, 24)):  # fmt: skip
        words = [a, b, c]
        words[target] ^= words[source]
        words[target] = (words[target] - _left(words[source], bits, 32)) & _M32
        a, b, c = words
    return c


def _left(value: int, bits: int, width: int) -> int:
    return (value << bits | value >> (width - bits)) & ((1 << width) - 1)
