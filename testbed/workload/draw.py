"""A workload description plus a seed gives the requests of a run: pure, no I/O.

::

    arrivals ─┐
    input ────┤            ┌─ ids, times, blocks, bytes ─► tuple[Request, ...]
    hit ──────┼─► columns ─┤
    output ───┤            │
    prompts ──┘            └─ payload of the window ─────► Offered
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from testbed.contract.agent import Request, Shape, Window
from testbed.contract.plan import Offered
from testbed.errors import PlanError
from testbed.scenario.workload import TraceArrivals, Workload
from testbed.workload.arrivals import REQUESTS_MAX, bursty, check_count, even, poisson
from testbed.workload.hits import hit_shares
from testbed.workload.lengths import input_lengths, output_lengths
from testbed.workload.prefix import Prompt
from testbed.workload.sizes import byte_scale, raw_sizes, rescaled
from testbed.workload.stream import stream
from testbed.workload.structure import structured
from testbed.workload.traces import Trace

Column = NDArray[np.int64]


def draw(
    workload: Workload,
    shape: Shape,
    prefill_names: Sequence[str],
    decode_names: Sequence[str],
    window: Window,
    seed: int,
    leg_payload_bps: float,
    legs: int,
    trace: Trace | None = None,
    spans_wanted: bool = False,
) -> tuple[tuple[Request, ...], Offered]:
    """Draw the requests that arrive in warm-up and measuring window, and what they offer.

    Args:
        prefill_names: names of the P instances, in order; requests are spread over them.
        decode_names: the same for the MD instances.
        leg_payload_bps: payload rate of one WAN leg (less frame, IP and TCP headers).
        trace: the loaded trace, where ``workload.arrivals`` is one (see ``load_trace``).
        spans_wanted: whether every request needs its prompt as spans (a serving plane).

    Returns:
        The requests in order of arrival, and ``Offered``; a closed loop offers no load
        of its own (``load`` and ``raw_load`` are 0, ``payload_bytes`` covers all requests).

    Raises:
        PlanError: no request arrives, there are too many, or the wanted load cannot be met.
    """
    if not prefill_names or not decode_names:
        raise PlanError(
            "draw workload", "instances", "there is no P or no MD to serve it", "have 1 of each"
        )
    if trace is None and workload.arrivals.kind == "trace":
        raise PlanError("draw workload", workload.arrivals.file, "the trace was not loaded")
    at_ns = _times(workload, window, seed, trace)
    count = at_ns.size
    if count == 0:
        raise PlanError(
            "draw workload",
            f"{window.end_ns / 1e9:g} s of {workload.arrivals.kind} arrivals",
            "no request arrives",
            "raise the rate or lengthen the window",
        )
    input_tokens = input_lengths(
        workload.input, shape.block_tokens, count, trace, stream(seed, "input")
    )
    shares = hit_shares(workload.hit, input_tokens, trace, stream(seed, "hit"))
    output_tokens = output_lengths(workload.output, count, trace, stream(seed, "output"))
    spans: Sequence[Prompt] = ()
    session: Column | None = None
    if workload.structured or spans_wanted:
        prompts = structured(
            workload, shape.block_tokens, input_tokens, shares, output_tokens, trace, seed
        )
        spans, input_tokens, shares = prompts.spans, prompts.input_tokens, prompts.hit_shares
        session = prompts.session
    sizes = raw_sizes(input_tokens, shares, shape)

    closed = workload.arrivals.kind == "closed"
    inside = np.full(count, True) if closed else at_ns >= window.begin_ns
    capacity_bytes = window.measure_ns / 1e9 * legs * leg_payload_bps / 8
    raw_bytes = int(sizes.wire_bytes[inside].sum())
    scale = 1.0
    if workload.offered_load is not None:
        scale = byte_scale(raw_bytes, workload.offered_load.ratio, capacity_bytes)
        sizes = rescaled(sizes, scale)
    payload_bytes = int(sizes.wire_bytes[inside].sum())

    prefill = _assign(workload, count, len(prefill_names), seed, "prefill")
    decode = _assign(workload, count, len(decode_names), seed, "decode")
    requests = tuple(
        Request(
            id=i,
            at_ns=int(at_ns[i]),
            input_tokens=int(input_tokens[i]),
            hit_tokens=int(sizes.hit_tokens[i]),
            output_tokens=int(output_tokens[i]),
            blocks=int(sizes.blocks[i]),
            wire_bytes=int(sizes.wire_bytes[i]),
            prefill=prefill_names[int(prefill[i])],
            decode=decode_names[int(decode[i])],
            prompt=spans[i] if spans else (),
            session=None if session is None else int(session[i]),
        )
        for i in range(count)
    )
    offered = Offered(
        payload_bytes=payload_bytes,
        legs=legs,
        leg_payload_bps=leg_payload_bps,
        load=0.0 if closed else payload_bytes / capacity_bytes,
        byte_scale=scale,
        raw_load=0.0 if closed else raw_bytes / capacity_bytes,
    )
    return requests, offered


def _times(workload: Workload, window: Window, seed: int, trace: Trace | None) -> Column:
    arrivals = workload.arrivals
    end_ns = window.end_ns
    match arrivals.kind:
        case "poisson":
            return poisson(arrivals.rate.per_second, end_ns, stream(seed, "arrivals"))
        case "bursty":
            return bursty(
                arrivals.rate.per_second,
                arrivals.burst.seconds,
                arrivals.silence.seconds,
                end_ns,
                stream(seed, "arrivals"),
            )
        case "even":
            return even(arrivals.every.ns, arrivals.first.ns, arrivals.count, end_ns)
        case "trace":
            return _traced(arrivals, end_ns, trace)
        case "closed":
            if arrivals.requests > REQUESTS_MAX:
                raise PlanError(
                    "draw arrivals",
                    f"{arrivals.requests:,} requests",
                    f"are more than {REQUESTS_MAX:,}",
                    "lower requests",
                )
            return np.zeros(arrivals.requests, dtype=np.int64)


def _traced(arrivals: TraceArrivals, end_ns: int, trace: Trace | None) -> Column:
    """The trace's times, stretched to the wanted mean rate (gaps over span), cut at the end."""
    if trace is None:
        return np.empty(0, dtype=np.int64)
    at_ns = trace.at_ns[: arrivals.take]
    if arrivals.rate is not None:
        rate_hz = arrivals.rate.per_second
        check_count(rate_hz, end_ns)
        span_s = float(at_ns[-1]) / 1e9
        if span_s == 0.0:
            raise PlanError(
                "stretch trace",
                arrivals.file,
                "all its requests arrive at one moment",
                "leave rate out or take more rows",
            )
        at_ns = np.rint(at_ns * ((at_ns.size - 1) / span_s / rate_hz)).astype(np.int64)
    return at_ns[at_ns < end_ns]


def _assign(workload: Workload, count: int, instances: int, seed: int, purpose: str) -> Column:
    if workload.assignment == "round-robin":
        return np.arange(count, dtype=np.int64) % instances
    return stream(seed, f"assign {purpose}").integers(0, instances, count, dtype=np.int64)
