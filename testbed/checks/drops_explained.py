"""Where did packets get lost? Informational: a full buffer drops by design."""

from __future__ import annotations

from collections import Counter

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found


class DropsExplained:
    """No packet is dropped on a link whose profile promises no loss."""

    name = "drops-explained"
    claim = "No packet was dropped on a link whose profile promises no loss."

    def examine(self, case: Case) -> Finding:
        """Sum the drops of each link and direction; those without a loss model count."""
        drops: Counter[tuple[str, str]] = Counter()
        packets: Counter[tuple[str, str]] = Counter()
        for sample in case.history.samples:
            drops[sample.link, sample.direction] += sample.drops
            packets[sample.link, sample.direction] += sample.packets
        broken: list[str] = []
        for link in case.plan.network.links:
            for direction, spec in (("forward", link.forward), ("backward", link.backward)):
                lost = drops[link.name, direction]
                if lost and spec.loss is None:
                    share = lost / max(1, lost + packets[link.name, direction])
                    broken.append(
                        f"{link.name} {direction}: {lost} dropped ({share:.2e}), buffer "
                        f"{spec.buffer_bytes} bytes"
                    )
        total = sum(drops.values())
        evidence = f"{total:,} drops of {sum(packets.values()) + total:,} packets on sampled links"
        return found(self.name, self.claim, evidence, broken, decides=False)
