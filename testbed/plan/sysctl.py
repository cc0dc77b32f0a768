"""Kernel settings of routers and agents, all per network namespace (Linux 6.12)."""

from __future__ import annotations

from testbed.contract.agent import Tcp

Setting = tuple[str, str]

QUIET: tuple[Setting, ...] = (
    ("net.ipv6.conf.all.disable_ipv6", "1"),
    ("net.ipv6.conf.default.disable_ipv6", "1"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
)
"""No neighbour discovery that would shift seeded draws; asymmetric legs are allowed."""

FIVE_TUPLE = "55"
"""fib_multipath_hash_fields: addresses, protocol and both ports (0x37)."""

LOCAL_PORTS = "32768 60999"
"""Linux's default, stated: pool connections bind ports below it."""


def router_sysctls(hash_seed: int) -> tuple[Setting, ...]:
    """A router that spreads connections over equal legs by a fixed hash.

    Policy 3 hashes the named fields with a seed of its own; policy 1 would use the
    socket's random hash, and which leg a connection takes would differ per boot.
    """
    return (
        *QUIET,
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv4.fib_multipath_hash_policy", "3"),
        ("net.ipv4.fib_multipath_hash_fields", FIVE_TUPLE),
        ("net.ipv4.fib_multipath_hash_seed", str(hash_seed)),
    )


def agent_sysctls(tcp: Tcp) -> tuple[Setting, ...]:
    """TCP as the scenario wants it; metrics of old connections are not reused."""
    return (
        *QUIET,
        ("net.ipv4.tcp_congestion_control", tcp.congestion),
        ("net.ipv4.tcp_slow_start_after_idle", str(int(tcp.slow_start_after_idle))),
        ("net.ipv4.tcp_no_metrics_save", "1"),
        ("net.ipv4.tcp_rmem", f"4096 {min(131_072, tcp.receive_buffer)} {tcp.receive_buffer}"),
        ("net.ipv4.tcp_wmem", f"4096 {min(65_536, tcp.send_buffer)} {tcp.send_buffer}"),
        ("net.ipv4.ip_local_port_range", LOCAL_PORTS),
    )
