"""How long a transfer to MD will probably take: queue, line, round trip. Pure."""

from __future__ import annotations

from testbed.errors import AgentError
from testbed_agents.router.view import ClusterView, InstanceView, RequestFacts

_NS = 1_000_000_000


def predict_wan_ns(
    request: RequestFacts, prefill: InstanceView, decode: InstanceView, view: ClusterView
) -> int:
    """Nanoseconds from "blocks ready at P" to "verified at MD", as far as can be told.

    bytes / rate + one round trip + wait for a connection. The rate is what the others
    leave, but at least an equal share among all transfers of the leg. With no idle
    connection, ``waiting + 1`` must end before ours begins, ``size`` at a time, each as
    long as the latest ones took (as ours would, before the first).

    Raises:
        AgentError: the pair has no pool, or its pool names no leg that is known.
    """
    size = request.wire_bytes(decode.hit_blocks)
    if not size:
        return 0
    pool = view.pools.get((prefill.name, decode.name))
    leg = None if pool is None else view.legs.get(pool.leg)
    if pool is None or leg is None or leg.payload_bps <= 0 or pool.size <= 0:
        pair = f"{prefill.name} to {decode.name}"
        raise AgentError("predict a transfer", pair, "no pool over a known leg joins them")
    share = max(1.0 - leg.used, 1.0 / (leg.flows + 1))
    own = round(size * 8 * _NS / (leg.payload_bps * share)) + leg.rtt_ns
    if pool.busy < pool.size and not pool.waiting:
        return own
    return own + (pool.transfer_ns or own) * (pool.waiting + 1) // pool.size
