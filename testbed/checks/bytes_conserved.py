"""Do as many bytes arrive as the request asked for? Neither lost nor made up."""

from __future__ import annotations

from collections import defaultdict, deque

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.history import Step
from testbed.contract.event import Kind
from testbed.contract.role import Role


class BytesConserved:
    """Planned, offered, received and acknowledged bytes of each transfer are equal."""

    name = "bytes-conserved"
    claim = "Each transfer's bytes planned, offered, received and acknowledged are equal."

    def examine(self, case: Case) -> Finding:
        """Compare the sizes of every transfer that was acknowledged."""
        broken: list[str] = []
        offered: dict[tuple[int, str], int] = {}
        received: defaultdict[tuple[int, str], deque[int]] = defaultdict(deque)
        for step in case.history.of(Kind.KV_VERIFIED):
            received[step.req, step.node].append(step.size)
        total = 0
        for step in case.history.steps:
            way = (step.req, step.peer)
            if step.kind is Kind.TRANSFER_START:
                offered[way] = step.size
                planned = _planned(case, step)
                if step.size < planned:
                    broken.append(f"request {step.req} offered {step.size} of {planned} bytes")
            elif step.kind is Kind.TRANSFER_ACKED:
                total += step.size
                got = received[way].popleft() if received[way] else None
                sizes = (offered.get(way), got, step.size)
                if len(set(sizes)) != 1:
                    broken.append(
                        f"request {step.req} offered {sizes[0]}, received {sizes[1]}, "
                        f"acknowledged {sizes[2]} bytes"
                    )
        return found(
            self.name, self.claim, f"{total / 1e9:.3f} GB in acknowledged transfers", broken
        )


def _planned(case: Case, step: Step) -> int:
    """What a transfer has to carry: by the workload, or by what its receiver's cache lacked."""
    request = case.asked_by(step.req)
    if request is None:
        return 0
    if case.plan.agents[0].serving is None:
        return request.wire_bytes
    if any(agent.node == step.node and agent.role is Role.RELAY for agent in case.plan.agents):
        return 0  # rows of the tokens that it emitted, however many MD needs
    shape = case.plan.agents[0].shape
    blocks = request.input_tokens // shape.block_tokens
    held, _ = case.history.matched.get((step.peer, step.req), (0, blocks))
    return (blocks - held) * shape.block_tokens * shape.bytes_per_token + shape.fixed_bytes
