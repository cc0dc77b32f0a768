"""Where did packets get lost, and why? Informational: it remarks and never decides.

A profile that promises no loss has no loss model; its buffer is finite all the same. A sender
that probes for bandwidth fills that buffer and loses packets there: TCP as it is. What was lost
while a fault was in force on the link is the fault's, and no remark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.history import History
from testbed.checks.moment import LinkSample
from testbed.contract.fault import LinkFault
from testbed.contract.plan import Plan

Way = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Force:
    fault: str
    begin_ns: int
    end_ns: int | None

    def within(self, sample: LinkSample) -> bool:
        """Whether it was in force in a part of the sample's interval."""
        begun = self.begin_ns < sample.t
        return begun and (self.end_ns is None or self.end_ns > sample.t - sample.interval_ns)


class DropsExplained:
    """Remarks on packets that were lost where neither a loss model nor a fault explains it."""

    name = "drops-explained"
    claim = (
        "No packet was lost on a link without a loss model or a fault in force (normal under TCP; "
        "a remark)."
    )

    def examine(self, case: Case) -> Finding:
        """Sum the drops of each link and direction; those that nothing explains count."""
        forces = _forces(case.plan, case.history)
        dropped: Counter[Way] = Counter()
        lost: Counter[Way] = Counter()
        packets: Counter[Way] = Counter()
        by_fault: Counter[str] = Counter()
        total = 0
        for sample in case.history.samples:
            way = sample.link, sample.direction
            packets[way] += sample.packets
            gone = sample.drops + sample.lost
            total += gone
            fault = _fault(forces, sample) if gone else None
            if fault is not None:
                by_fault[fault] += gone
                continue
            dropped[way] += sample.drops
            lost[way] += sample.lost
        broken: list[str] = []
        for link in case.plan.network.links:
            for direction, spec in (("forward", link.forward), ("backward", link.backward)):
                way = link.name, direction
                if spec.loss is not None:
                    continue
                sent = max(1, dropped[way] + lost[way] + packets[way])
                if dropped[way]:
                    broken.append(
                        f"{link.name} {direction}: {dropped[way]} dropped by a full buffer of "
                        f"{spec.buffer_bytes} bytes, {dropped[way] / sent:.2e} of what was sent"
                    )
                if lost[way]:
                    broken.append(
                        f"{link.name} {direction}: {lost[way]} lost behind the buffer, "
                        f"{lost[way] / sent:.2e} of what was sent, with no fault in force"
                    )
        evidence = f"{total:,} drops of {sum(packets.values()) + total:,} packets on sampled links"
        if by_fault:
            told = ", ".join(f"{name} {count:,}" for name, count in sorted(by_fault.items()))
            evidence += f"; while faults were in force: {told}"
        return found(self.name, self.claim, evidence, broken, decides=False)


def _forces(plan: Plan, history: History) -> Mapping[Way, list[_Force]]:
    """Faults in force on each direction of each link, as the record has them."""
    faults = {fault.name: fault for fault in plan.faults if isinstance(fault, LinkFault)}
    found: dict[Way, list[_Force]] = {}
    opened: dict[tuple[str, str], int] = {}

    def close(fault: str, link: str, begin_ns: int, end_ns: int | None) -> None:
        for direction, acts in (
            ("forward", faults[fault].forward), ("backward", faults[fault].backward),
        ):  # fmt: skip
            if acts:
                found.setdefault((link, direction), []).append(_Force(fault, begin_ns, end_ns))

    for deed in history.deeds:
        if deed.fault not in faults:
            continue
        key = deed.fault, deed.subject
        if deed.began:
            opened[key] = deed.t
        elif key in opened:
            close(*key, opened.pop(key), deed.t)
    for key, begin_ns in opened.items():
        close(*key, begin_ns, None)
    return found


def _fault(forces: Mapping[Way, list[_Force]], sample: LinkSample) -> str | None:
    """The fault in force on the sample's link; of several the first by name."""
    own = forces.get((sample.link, sample.direction), [])
    return min((force.fault for force in own if force.within(sample)), default=None)
