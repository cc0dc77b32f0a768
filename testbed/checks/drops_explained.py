"""Where did packets get lost? Informational: it remarks and never decides.

A profile that promises no loss has no loss model; its buffer is finite all the same. A sender
that probes for bandwidth fills that buffer and loses packets there: TCP as it is.
"""

from __future__ import annotations

from collections import Counter

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found


class DropsExplained:
    """Remarks on buffers that overflowed on links without a loss model."""

    name = "drops-explained"
    claim = "No buffer overflowed on a link without a loss model (normal under TCP; a remark)."

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
                        f"{link.name} {direction}: {lost} dropped by a full buffer of "
                        f"{spec.buffer_bytes} bytes, {share:.2e} of what was sent"
                    )
        total = sum(drops.values())
        evidence = f"{total:,} drops of {sum(packets.values()) + total:,} packets on sampled links"
        return found(self.name, self.claim, evidence, broken, decides=False)
