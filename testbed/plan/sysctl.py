"""Kernel settings of routers and agents, all per network namespace (Linux 6.12)."""

from __future__ import annotations

from testbed.contract.agent import Tcp
from testbed.contract.pool import Pool

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

FIRST_LOCAL_PORT, LAST_LOCAL_PORT = 32_768, 60_999
"""Linux's default range, stated: connections that stand bind ports below it."""

TIME_WAIT_BUCKETS = "262144"
"""Linux's default on a large host. A small guest's is a few thousand, and beyond it the kernel
skips TIME_WAIT (tcp_time_wait(), net/ipv4/tcp_minisocks.c): source ports would never run out."""


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


def agent_sysctls(tcp: Tcp, pool: Pool) -> tuple[Setting, ...]:
    """TCP as the scenario wants it; metrics of old connections are not reused."""
    # a socket can choose its port only within this range (IP_LOCAL_PORT_RANGE)
    first = min(FIRST_LOCAL_PORT, pool.source_port) if pool.closes else FIRST_LOCAL_PORT
    return (
        *QUIET,
        ("net.ipv4.tcp_congestion_control", tcp.congestion),
        ("net.ipv4.tcp_slow_start_after_idle", str(int(tcp.slow_start_after_idle))),
        ("net.ipv4.tcp_no_metrics_save", "1"),
        ("net.ipv4.tcp_rmem", f"4096 {min(131_072, tcp.receive_buffer)} {tcp.receive_buffer}"),
        ("net.ipv4.tcp_wmem", f"4096 {min(65_536, tcp.send_buffer)} {tcp.send_buffer}"),
        ("net.ipv4.ip_local_port_range", f"{first} {LAST_LOCAL_PORT}"),
        *((("net.ipv4.tcp_max_tw_buckets", TIME_WAIT_BUCKETS),) if pool.closes else ()),
    )
