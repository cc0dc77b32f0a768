"""Do as many bytes arrive as the request asked for? Neither lost nor made up."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.step import Step
from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.scenario.profiles import model_facts

HEADER_BYTES, ENTRY_BYTES, CHUNK_BYTES, PART_BYTES = 64, 20, 72, 44
"""What a transfer is framed by on the wire: once, for each block, for each chunk; each part of one
that goes over several connections has its own head, and says what it is a part of."""


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
                due = _due(case, step)
                if due is not None and not due.holds(step.size):
                    broken.append(
                        f"request {step.req} offered {step.size} of {due.size_bytes} bytes"
                    )
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


@dataclass(frozen=True, slots=True)
class _Due:
    """What a transfer has to carry, and the most that its real content can raise it to."""

    size_bytes: int
    raised_bytes: int

    def holds(self, size: int) -> bool:
        """Whether so many bytes are what is due, or that raised to its least."""
        return size == self.size_bytes or self.size_bytes < size <= self.raised_bytes


def _due(case: Case, step: Step) -> _Due | None:
    """By the workload, or by what the receiver's cache lacked; None where neither is known."""
    request = case.asked_by(step.req)
    if request is None:
        return None
    shape = case.plan.agents[0].shape
    real = shape.block_tokens // shape.ratio
    if case.plan.agents[0].serving is None:
        return _Due(request.wire_bytes, _most(case, request.blocks, request.blocks * real))
    if any(agent.node == step.node and agent.role is Role.RELAY for agent in case.plan.agents):
        ends = [one.tokens for one in case.history.plane.relay_ends if one.req == step.req]
        if len(ends) != 1:
            return None
        rows = ends[0]  # of the tokens that it emitted, however many MD needs
        return _Due(rows * shape.bytes_per_token + shape.fixed_bytes, _most(case, 1, rows))
    blocks = request.input_tokens // shape.block_tokens
    held, _ = case.history.matched.get((step.peer, step.req), (0, blocks))
    lacked = blocks - held
    size = lacked * shape.block_tokens * shape.bytes_per_token + shape.fixed_bytes
    return _Due(size, _most(case, lacked, lacked * real))


def _most(case: Case, blocks: int, real_tokens: int) -> int:
    """The real KV in frames: a transfer that stands for fewer bytes is raised to its minimum.

    Frames: a header with table and digest, an entry a block, a head and a stamp a chunk, of
    which there are at most as many as blocks.
    """
    models = model_facts().models
    facts = next(facts for name, facts in models.items() if name == case.plan.model)
    frames = HEADER_BYTES + blocks * ENTRY_BYTES + max(1, blocks) * CHUNK_BYTES
    stripes = case.plan.agents[0].pool.stripes
    frames += stripes * (HEADER_BYTES + PART_BYTES) if stripes > 1 else 0
    return frames + real_tokens * facts.kv_per_real_token.value.bytes
