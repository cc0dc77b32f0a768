"""Section 6.4: what one RLD costs as the deployment around it grows.

The paper expects its overhead to be better amortised in larger deployments.
"""

from __future__ import annotations

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import read_events
from testbed.metrics.run import read_run, role_codes
from testbed.metrics.stages import first
from testbed.report.table import Table
from testbed.reproduce.deployment import IMPLIED, Deployment
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes, RunOutcome
from testbed.reproduce.routed import turned_away
from testbed.reproduce.study import Claim, Judged, Measure, Study, Variant

TURNED_AWAY = "router.turned_away"
SIZES = (5, 10, 20, 40)
"""P; MD are 1.6 times as many, requests 1.15 a second for each P."""
QUICK_SIZES = (5, 10, 20)
_PLANE = (
    "topology.parameters.prefill=2",
    "topology.parameters.decode=2",
    "serving.hardware.prefill=network-only",
    "workload.output={kind: fixed, tokens: 32 tokens}",
)


_CHANGES = (
    ("h-80", "H of 80 %", "serving.pipeline.threshold=80 %"),
    ("h-98", "H of 98 %", "serving.pipeline.threshold=98 %"),
    ("rtt-60", "RTT 60 ms", "links.wan.rtt=60 ms"),
    ("pool-1", "one connection a pair", "pool.size=1"),
)
BUSY_MOST = 0.9
"""Of RLD's places, in the mean; above it RLD is full."""
REAL_SIZES = (10, 20)


def deployment(prefills: int) -> Deployment:
    """The paper's proportions around one RLD."""
    return Deployment(prefill=prefills, relay=1, main=prefills * 8 // 5, decode=0)


def variants(extent: Extent) -> tuple[Variant, ...]:
    """One RLD under the requests that 5 to 40 P would give it; in longer runs other H and RTT."""
    quick = extent is Extent.QUICK
    window = f"window={{warm_up: 2 s, measure: {6 if quick else 30} s, drain: 60 s}}"
    found = tuple(
        Variant(
            f"p-{count}", "pdd-paper", f"requests of {count} P",
            (*_PLANE, window, f"workload.arrivals={{kind: poisson, rate: {count * 1.15:g} /s}}"),
        )
        for count in (QUICK_SIZES if quick else SIZES)
    )  # fmt: skip
    if quick:
        return found
    base = next(one for one in found if one.label == "p-10")
    return (
        *found,
        *(
            Variant(f"p-10-{label}", base.scenario, f"{base.words}, {words}",
                    (*base.overrides, change), seeds=1, against=base.label)
            for label, words, change in _CHANGES
        ),
        *(_real(one, count) for count in REAL_SIZES for one in found if one.label == f"p-{count}"),
    )  # fmt: skip


def _real(base: Variant, count: int) -> Variant:
    """The same requests with as many P as they need, and with P's times."""
    real = (f"topology.parameters.prefill={count}", "serving.hardware.prefill=h100-p")
    return Variant(
        f"{base.label}-real", base.scenario, f"{base.words}, which compute",
        (*base.overrides, *real), seeds=1, against=base.label,
    )  # fmt: skip


def busy_share(run: RunOutcome) -> float | None:
    """Mean requests at RLD over its batch limit, within the window."""
    known, events = read_run(run.folder), read_events(run.folder)
    relays = known.agents(Role.RELAY)
    came, codes = events[Kind.KV_VERIFIED], role_codes(known, events, Role.RELAY)
    since = {
        req: t
        for req, t, node in zip(came.req.tolist(), came.t.tolist(), came.node.tolist(), strict=True)
        if node in codes
    }
    begin, end = known.window.begin_ns, known.window.end_ns
    held = sum(
        max(0, min(t, end) - max(since[req], begin))
        for req, t in first(known, events, Kind.RELAY_END).items()
        if req in since
    )
    places = sum(agent.hardware.max_batch for agent in relays)
    return held / (end - begin) / places if places else None


def amortises(out: Outcomes) -> Judged:
    """RLD has room at every size."""
    sizes = [n for n in SIZES if out.has(f"p-{n}") or n in QUICK_SIZES]
    shares = {n: deployment(n).relay_share(IMPLIED[1]) for n in sizes}
    busy = {n: out.mean(f"p-{n}", "busy_share") for n in sizes}
    words = "; ".join(
        f"{n} P: {share:.1%} of the cost, {busy[n]:.1%} busy" for n, share in shares.items()
    )
    against = [f"{n} P: RLD is full" for n, value in busy.items() if value >= BUSY_MOST]
    for n in REAL_SIZES:
        if out.has(f"p-{n}-real"):
            words += f"; {n} P that compute: {out.mean(f'p-{n}-real', 'busy_share'):.1%} busy"
    return Judged(words, against)


def relays_all(out: Outcomes) -> Judged:
    """No request was turned away from RLD for want of room."""
    sizes = [n for n in SIZES if out.has(f"p-{n}") or n in QUICK_SIZES]
    total = {f"p-{n}": sum(out.of(f"p-{n}", TURNED_AWAY).values()) for n in sizes}
    words = ", ".join(f"{label}: {count:g}" for label, count in total.items())
    relayed = out.mean("p-10", "serving.pipelines.P-RLD-MD")
    return Judged(
        f"turned away: {words}; at the paper's size {relayed:.0f} went through RLD",
        [f"{k}: {v:g}" for k, v in total.items() if v],
    )


def cost_table(out: Outcomes) -> tuple[Table, ...]:
    """RLD's part of the cost."""
    rows = tuple(
        (
            f"{count} P, 1 RLD, {deployment(count).main} MD",
            *(f"{deployment(count).relay_share(ratio):.2%}" for ratio in (1.0, *IMPLIED)),
        )
        for count in SIZES
    )
    head = ("deployment", "H200 at 1", *(f"at {ratio:g}" for ratio in IMPLIED))
    note = "Three H100 nodes of RLD over all nodes, priced in H100 nodes; no run is needed for it."
    return (Table(caption="RLD's part of the cost", head=head, rows=rows, notes=(note,)),)


STUDY = Study(
    name="amortise",
    title="One RLD in larger deployments",
    question="How far can P and MD grow around one RLD before it is full, and what is it then of "
    "the cost?",
    variants=variants,
    measures=(
        Measure("busy_share", "Places of RLD in use, mean", busy_share),
        Measure("serving.rld_peak", "Most requests at RLD at once"),
        Measure("rld.output_tokens_mean", "Tokens that RLD decodes for a request"),
        Measure("serving.pipelines.P-RLD-MD", "Requests through RLD"),
        Measure(TURNED_AWAY, "Turned away by a full RLD", turned_away),
        Measure("ttft.p99_s", "TTFT, P99"),
        Measure("offered_load", "Load of the line"),
    ),
    claims=(
        Claim("rld-amortises",
              "RLD has room at every size: under 90 % of its places are busy in the mean. That "
              "its part of the cost falls is arithmetic.", amortises),
        Claim("rld-turns-nobody-away", "No request is turned away from RLD.", relays_all),
    ),
    assumptions=(
        "Two P without compute time and two MD give RLD the requests of 5 to 40 P (1.15 requests/s "
        "a P, as 11.5 for 10). What is measured is RLD; cost follows from node counts.",
        "P takes no time: a request reaches RLD as it arrived, not when P has worked through its "
        "queue. That alone may make room at RLD, so 10 and 20 P that compute are run as well, one "
        "seed each.",
        "H of 95 %, RTT 20 ms, 8 connections a pair: unpublished; longer runs vary each once.",
        "The line stays 2 x 10 Gbit/s. Answers of 32 tokens: RLD hands over before their end.",
        "Prices as for Table 8: an H200 node at 1.21 to 1.31 H100 nodes.",
    ),
    tables=cost_table,
)  # fmt: skip
