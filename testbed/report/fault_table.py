"""Scheduled faults: a table in words, and spans that charts over time shade."""

from __future__ import annotations

from testbed.contract.fault import (
    AddedDelay,
    AddedJitter,
    AddedLoss,
    AgentFault,
    Corruption,
    Down,
    Duplication,
    LinkFault,
    NodeFault,
    PlannedFault,
    Reordering,
    ResetFault,
    SlowRate,
    Span,
    TrafficFault,
)
from testbed.contract.sieve import Hold, Sieve
from testbed.report import wording
from testbed.report.ailment import ailment
from testbed.report.chart import Band
from testbed.report.summary import RunSummary
from testbed.report.table import Table

MOST_BANDS = 60
"""A chart shades so many spans; the table lists every fault."""
_ACTS = {
    "pause": "stands still", "kill": "ends at once", "restart": "ends and starts anew",
    "disconnect": "has no links",
}  # fmt: skip


def fault_table(run: RunSummary) -> Table:
    """Every fault of the plan; without rows where there is none."""
    rows = tuple(
        (fault.name, _subjects(fault), _deed(fault, run.plan.scale.slow), _times(run, fault))
        for fault in run.plan.faults
    )
    return Table(
        caption="Faults that the scenario scheduled", head=("fault", "on", "what happens", "when"),
        rows=rows, worded=(1, 2, 3), prose=True,
    )  # fmt: skip


def fault_bands(run: RunSummary) -> tuple[Band, ...]:
    """When faults were in force, in order; the first span of each bears its name."""
    last_s = run.window.deadline_ns / 1e9
    bands = [
        Band(
            begin=span.begin_ns / 1e9,
            end=last_s if span.end_ns is None else span.end_ns / 1e9,
            label=fault.name if number == 0 else "",
            fault=True,
        )
        for fault in run.plan.faults
        for number, span in enumerate(_spans(run, fault))
    ]
    return tuple(sorted(bands, key=lambda band: band.begin)[:MOST_BANDS])


def _subjects(fault: PlannedFault) -> str:
    if not isinstance(fault, LinkFault):
        return ", ".join(fault.nodes)
    names = ", ".join(fault.links)
    if fault.forward and fault.backward:
        return names
    return f"{names}, {'forward' if fault.forward else 'backward'}"


def _deed(fault: PlannedFault, slow: float) -> str:
    """In words, in emulated units: the plan has rates and delays as they are built."""
    if isinstance(fault, NodeFault):
        return _ACTS[fault.act]
    if isinstance(fault, ResetFault):
        return _ended(fault)
    if isinstance(fault, TrafficFault):
        return _sent(fault, slow)
    if isinstance(fault, AgentFault):
        return ailment(fault.effect)
    match fault.effect:
        case Down():
            return "nothing passes"
        case SlowRate(rate_bps=bps):
            return f"at most {wording.rate(bps * slow)}"
        case AddedDelay(delay_ns=ns):
            return f"{wording.seconds(ns / slow / 1e9)} later"
        case AddedJitter(jitter=jitter):
            spread = wording.seconds(jitter.spread_ns / slow / 1e9)
            return f"{jitter.distribution.value} jitter of {spread}"
        case AddedLoss(loss=loss):
            shares = {
                name: wording.share(value)
                for name, value in loss.model_dump(exclude={"kind"}).items()
            }
            return f"{loss.kind} loss, {', '.join(f'{k} {v}' for k, v in shares.items())}"
        case Duplication(share=share):
            return f"{wording.share(share)} of the frames arrive twice"
        case Corruption(share=share):
            return f"one bit of {wording.share(share)} of the frames flipped"
        case Reordering(share=share):
            return f"{wording.share(share)} of the frames overtake the others"
        case Hold(stop_ns=stop_ns, each_ns=each_ns):
            stop, each = (wording.seconds(ns / slow / 1e9) for ns in (stop_ns, each_ns))
            return f"sends nothing for {stop} of every {each}"
        case Sieve() as sieve:
            return _picked(sieve)


def _spans(run: RunSummary, fault: PlannedFault) -> tuple[Span, ...]:
    """When it was in force: what waited for something began when the metrics say, or never."""
    if fault.trigger is None or not fault.spans:
        return fault.spans
    begin_s = run.metric(f"faults.{fault.name}.begin_s")
    if begin_s is None:
        return ()
    return fault.moved(round(begin_s * 1e9) - fault.spans[0].begin_ns)


def _ended(fault: ResetFault) -> str:
    peer = "" if fault.peer is None else f" with {fault.peer}"
    return "TCP connections" + peer + _with_port(fault.port) + " are reset"


def _sent(fault: TrafficFault, slow: float) -> str:
    how = "all the time"
    if fault.on_ns:
        on, off = (wording.seconds(ns / slow / 1e9) for ns in (fault.on_ns, fault.off_ns))
        how = f"on for {on}, off for {off} on average"
    return f"send to {fault.to} over {fault.flows} connections each, {how}"


def _with_port(port: int | None) -> str:
    return "" if port is None else f", TCP port {port}"


def _picked(sieve: Sieve) -> str:
    what = {
        "syn-loss": f"{wording.share(sieve.share)} of the segments with SYN vanish",
        "blackhole": "all packets vanish",
        "mtu": f"packets above {sieve.above} bytes vanish",
        "mark": f"{wording.share(sieve.share)} of the ECN-capable packets are marked",
    }[sieve.kind]
    flows = sieve.flows
    between = "" if flows.between is None else f" between {' and '.join(flows.between)}"
    return what + between + _with_port(flows.port)


def _times(run: RunSummary, fault: PlannedFault) -> str:
    """The first three spans, and how many there are; what it waits for."""
    if fault.trigger is not None:
        seen = fault.trigger
        at = wording.share(seen.progress)
        waits = f"at {at} of transfer {seen.transfer} from {seen.sender} to {seen.receiver}"
        return f"{waits}, from then on: {_listed(run, fault)}"
    return _listed(run, fault)


def _listed(run: RunSummary, fault: PlannedFault) -> str:
    shown = [
        f"{span.begin_ns / 1e9:g} s to "
        + ("the end" if span.end_ns is None else f"{span.end_ns / 1e9:g} s")
        for span in fault.spans[:3]
    ]
    more = len(fault.spans) - len(shown)
    if not shown:
        return "never: every chance was missed"
    return "; ".join(shown) + (f"; and {more} times more" if more else "")
