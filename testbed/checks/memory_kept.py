"""Does device memory add up? A sequence that decodes without room for it costs nothing.

Each event of the memory of an RLD or MD says how many sequences hold how many bytes of KV.
Who they are is not said, but they are among those that were admitted there; so, with the
fewest and the most tokens that each of these can have::

    the smallest ``held`` of them together <= bytes in use <= the largest ``held`` together
                                              bytes in use <= the memory, where it has a limit

The fewest are those of its prompt, the most those of prompt and answer. What is decoded was
admitted before: by its token's source at the client, by ``decode.start`` at MD, by
``relay.end`` at RLD. Tokens that MD only passes on, of an RLD that was lost or cancelled, need
no room of MD.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.checks.authority_single import CANCELLED, NO_PLANE
from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.plane import DeviceStep
from testbed.contract.agent import AgentConfig
from testbed.contract.attempt import attempt_id, request_of
from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.contract.serving import FirstToken, Serving

Way = tuple[str, int]
"""An instance and a request there."""


@dataclass(slots=True)
class _Memory:
    """One instance's device memory as its events tell it."""

    limit: int
    most_sequences: int
    peak: int = 0
    least: list[int] = field(default_factory=list)
    """Fewest bytes of each sequence that was ever admitted, ascending."""
    most: list[int] = field(default_factory=list)
    """Most bytes of each, ascending."""
    admitted: set[int] = field(default_factory=set)
    holding: set[int] = field(default_factory=set)
    """Those not preempted since; some of them may have ended."""
    faults: list[str] = field(default_factory=list)

    def take(self, step: DeviceStep, sizes: tuple[int, int]) -> None:
        """Replay one event of a sequence that may have so many bytes."""
        self.peak = max(self.peak, step.used_bytes)
        if step.kind is Kind.SEQUENCE_ADMITTED:
            if step.req in self.holding:
                self.faults.append(f"request {step.req} was admitted twice")
            if step.req not in self.admitted:
                insort(self.least, sizes[0])
                insort(self.most, sizes[1])
            self.admitted.add(step.req)
            self.holding.add(step.req)
            if not step.held:
                self.faults.append(f"request {step.req} was admitted, and nobody holds memory")
        elif step.req not in self.holding:
            self.faults.append(f"request {step.req} was preempted without being admitted")
        else:
            self.holding.remove(step.req)
        self._add_up(step)

    def _add_up(self, step: DeviceStep) -> None:
        where = f"at {step.t} ns"
        if not 0 <= step.held <= min(len(self.admitted), self.most_sequences):
            self.faults.append(f"{step.held} sequences hold memory {where}")
            return
        least = sum(self.least[: step.held])
        most = sum(self.most[len(self.most) - step.held :])
        if not least <= step.used_bytes <= most:
            self.faults.append(
                f"{step.used_bytes:,} bytes in use {where} by {step.held} sequences of "
                f"{least:,} to {most:,} together"
            )
        if self.limit and step.used_bytes > self.limit:
            self.faults.append(f"{step.used_bytes:,} bytes in use {where} of {self.limit:,}")


class MemoryKept:
    """Device memory keeps its limit and its sums; nothing is decoded without room in it."""

    name = "memory-kept"
    claim = "Device memory adds up within its limit, and whatever was decoded was admitted first."

    def examine(self, case: Case) -> Finding:
        """Replay every device memory; look for the admission of all that was decoded."""
        serving = case.plan.agents[0].serving
        if serving is None:
            return found(self.name, self.claim, NO_PLANE, [])
        agents = {agent.node: agent for agent in case.plan.agents}
        memories: dict[str, _Memory] = {}
        first: dict[Way, tuple[int, int]] = {}
        broken: list[str] = []
        for step in case.history.plane.device:
            if step.kind is Kind.DECODE_START:
                continue
            limit = _limit(serving, agents.get(step.node))
            if limit is None:
                broken.append(f"{step.node}: a {step.kind} where no sequence is decoded")
                continue
            most = agents[step.node].hardware.max_batch
            memories.setdefault(step.node, _Memory(limit, most)).take(step, _sizes(case, step.req))
            if step.kind is Kind.SEQUENCE_ADMITTED:
                first.setdefault((step.node, step.req), (step.t, step.seq))
        for (node, job), t, seq in _decoded(case, serving):
            if (node, job) not in first or first[node, job] > (t, seq):
                broken.append(
                    f"{node}: request {request_of(job)} was decoded before it was admitted"
                )
        for node, memory in sorted(memories.items()):
            broken.extend(f"{node}: {fault}" for fault in memory.faults)
        peaks = "; ".join(
            f"{node}: peak {memory.peak / 1e6:,.1f} MB{_of(memory.limit)}"
            for node, memory in sorted(memories.items())
        )
        return found(self.name, self.claim, peaks or "nothing was admitted", broken)


def _of(limit: int) -> str:
    return f" of {limit / 1e6:,.1f} MB" if limit else ", no limit"


def _limit(serving: Serving, agent: AgentConfig | None) -> int | None:
    """Bytes of an instance's memory for KV, 0 for no limit; None where it decodes nothing."""
    if agent is not None and agent.role is Role.RELAY:
        return serving.memory.relay_bytes or agent.hardware.kv_memory_bytes
    if agent is not None and agent.role is Role.DECODE:
        return serving.memory.decode_bytes or agent.hardware.kv_memory_bytes
    return None


def _sizes(case: Case, job: int) -> tuple[int, int]:
    """Bytes of a sequence with its prompt only, and with all of its answer."""
    request, shape = case.asked_by(job), case.plan.agents[0].shape
    if request is None:
        return 0, 0
    tokens = request.input_tokens, request.input_tokens + request.output_tokens
    least, most = (shape.fixed_bytes + shape.bytes_per_token * many for many in tokens)
    return least, most


def _decoded(case: Case, serving: Serving) -> Iterator[tuple[Way, int, int]]:
    """Instances that decoded a request, each with time and number of what shows it.

    The clients' events bear other numbers; at the same instant they come last.
    """
    last = 1 << 62
    base = int(serving.first_token is FirstToken.PREFILL)
    plane = case.history.plane
    for step in plane.device:
        if step.kind is Kind.DECODE_START:
            yield (step.node, step.req), step.t, step.seq
    for end in plane.relay_ends:
        if end.own_tokens(base):
            yield (end.node, end.req), end.t, end.seq
    routes = plane.route_of()
    passed_on = {end.req for end in plane.relay_ends if end.cause == CANCELLED}
    for req, story in sorted(case.history.stories.items()):
        for (position, source), attempt in zip(story.sources, story.attempts, strict=True):
            job = attempt_id(req, attempt)
            route = routes.get(job)
            if route is None or source == route.prefill:
                continue
            lost = route.relay in case.history.lost or job in passed_on
            if source == route.decode and route.relay and lost:
                continue
            index = next((i for i, at in enumerate(story.positions) if at == position), 0)
            yield (source, job), story.token_ns[index], last
