"""When transfers would start without a lab: arrivals sent through ideal prefill instances.

Used where no emulated run gives the times (the load sweep, ``testbed plan``): each P
is a first-come-first-served server whose service time is the hardware profile's.
"""

from __future__ import annotations

from collections.abc import Iterable

from testbed.contract.agent import Hardware, Request
from testbed.oracle.sharing import Transfer


def prefill_s(hardware: Hardware, uncached: int, context: int) -> float:
    """Seconds that one prefill of ``uncached`` tokens behind ``context`` cached ones takes."""
    return (
        hardware.prefill_base_s
        + uncached * hardware.prefill_token_s
        + uncached * (context + uncached / 2) * hardware.prefill_attention_s
    )


def after_prefill(requests: Iterable[Request], hardware: Hardware) -> tuple[Transfer, ...]:
    """The transfer of each request of an open loop, wanted when its prefill has ended."""
    free_s: dict[str, float] = {}
    transfers: list[Transfer] = []
    for request in sorted(requests, key=lambda request: (request.at_ns, request.id)):
        start_s = max(request.at_ns / 1e9, free_s.get(request.prefill, 0.0))
        uncached = request.input_tokens - request.hit_tokens
        end_s = start_s + prefill_s(hardware, uncached, request.hit_tokens)
        free_s[request.prefill] = end_s
        pair = f"{request.prefill} {request.decode}"
        transfers.append(Transfer(request.id, end_s, request.wire_bytes, pair))
    return tuple(transfers)
