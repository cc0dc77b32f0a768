"""Do as many bytes arrive as the request asked for? Neither lost nor made up."""

from __future__ import annotations

from collections import defaultdict, deque

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.contract.event import Kind


class BytesConserved:
    """Planned, offered, received and acknowledged bytes of each transfer are equal."""

    name = "bytes-conserved"
    claim = "Each transfer's bytes planned, offered, received and acknowledged are equal."

    def examine(self, case: Case) -> Finding:
        """Compare the sizes of every transfer that was acknowledged."""
        broken: list[str] = []
        offered: dict[int, int] = {}
        received: defaultdict[int, deque[int]] = defaultdict(deque)
        for step in case.history.of(Kind.KV_VERIFIED):
            received[step.req].append(step.size)
        total = 0
        for step in case.history.steps:
            if step.kind is Kind.TRANSFER_START:
                offered[step.req] = step.size
                request = case.requests.get(step.req)
                if request is not None and step.size < request.wire_bytes:
                    broken.append(
                        f"request {step.req} offered {step.size} of {request.wire_bytes} bytes"
                    )
            elif step.kind is Kind.TRANSFER_ACKED:
                total += step.size
                got = received[step.req].popleft() if received[step.req] else None
                sizes = (offered.get(step.req), got, step.size)
                if len(set(sizes)) != 1:
                    broken.append(
                        f"request {step.req} offered {sizes[0]}, received {sizes[1]}, "
                        f"acknowledged {sizes[2]} bytes"
                    )
        return found(
            self.name, self.claim, f"{total / 1e9:.3f} GB in acknowledged transfers", broken
        )
