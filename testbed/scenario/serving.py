"""The ``serving:`` part: caches, routing and handoff of the paper's serving plane.

Without it the workload itself names the instances and says what is cached (the pool
studies); with it a router decides, and caches hold what was really computed and sent.
"""

from __future__ import annotations

from typing import Literal

from testbed.contract.handoff import HandoffConfig, HandoffMode, Occupancy
from testbed.contract.record import Record
from testbed.contract.router import (
    InstanceRule,
    LeastLoaded,
    LongestPrefix,
    RandomInstance,
    RouterConfig,
    SessionSticky,
)
from testbed.contract.serving import Admission, Caches, DeviceLimits, FirstToken, Reserve, Serving
from testbed.scenario.entry import Count, HardwareName
from testbed.scenario.pipeline import PipelineChoice
from testbed.units import Duration, Share, Size, Tokens

InstanceName = Literal["random", "least-loaded", "session-sticky", "longest-prefix"]


class InstanceChoice(Record):
    """How an instance of each role is chosen."""

    prefill: InstanceName = "longest-prefix"
    relay: InstanceName = "least-loaded"
    decode: InstanceName = "longest-prefix"


class CacheChoice(Record):
    """Budgets of the prefix caches in emulated bytes; 0 switches one off."""

    prefill: Size = Size(256 * 2**30)
    decode: Size = Size(256 * 2**30)
    relay: Size = Size(0)


class MemoryChoice(Record):
    """Device memory of decode instances; None takes the hardware profile's."""

    relay: Size | None = None
    decode: Size | None = None
    reserve: Reserve = Reserve.KNOWN
    headroom: Tokens = Tokens(32)


class QueueChoice(Record):
    """P's queue: tokens and prompts of one pass."""

    chunk: Tokens = Tokens(16_384)
    batch: Count = 8


class AdmissionChoice(Record):
    """Most requests at each: what comes beyond them is refused at once, by name."""

    router: Count = 16_384
    prefill: Count = 8_192
    decode: Count = 8_192


class HandoffChoice(Record):
    """How RLD hands over, and how long it may keep a request."""

    mode: HandoffMode = HandoffMode.CATCH_UP
    lower: Share = Share.parse("50 %")
    upper: Share = Share.parse("80 %")
    most: Tokens = Tokens(1024)
    least: Tokens = Tokens(128)
    easy: Share = Share.parse("50 %")
    hold: Duration = Duration(60 * 10**9)


class HardwareChoice(Record):
    """Hardware profiles by role; None takes ``shape.hardware``."""

    prefill: HardwareName | None = None
    near_prefill: HardwareName | None = None
    """Of P that share their site with an MD; None takes ``prefill``."""
    relay: HardwareName | None = None
    decode: HardwareName | None = None


class ServingChoice(Record):
    """The serving plane as an author writes it."""

    pipeline: PipelineChoice
    instances: InstanceChoice = InstanceChoice()
    caches: CacheChoice = CacheChoice()
    queue: QueueChoice = QueueChoice()
    handoff: HandoffChoice = HandoffChoice()
    admission: AdmissionChoice = AdmissionChoice()
    first_token: FirstToken = FirstToken.DECODE
    memory: MemoryChoice = MemoryChoice()
    hardware: HardwareChoice = HardwareChoice()
    match_timeout: Duration = Duration(30 * 10**9)
    """How long P waits for MD to say what it holds."""

    def resolve(
        self,
        seed: int,
        rtt_ns: int,
        documents: tuple[tuple[int, int], ...],
        site_of: tuple[tuple[str, str], ...],
        most_sequences: tuple[tuple[str, int], ...],
        leg_payload_bps: tuple[tuple[str, int], ...],
    ) -> Serving:
        """The same as agents see it."""
        handoff, memory = self.handoff, self.memory
        return Serving(
            caches=Caches(
                prefill_bytes=self.caches.prefill.bytes,
                decode_bytes=self.caches.decode.bytes,
                relay_bytes=self.caches.relay.bytes,
            ),
            router=RouterConfig(
                pipeline=self.pipeline.rule(),
                prefill=_instance(self.instances.prefill, seed),
                relay=_instance(self.instances.relay, seed),
                decode=_instance(self.instances.decode, seed),
            ),
            handoff=HandoffConfig(
                mode=handoff.mode,
                lower=handoff.lower.fraction,
                upper=handoff.upper.fraction,
                occupancy=Occupancy(
                    most_tokens=handoff.most.count,
                    least_tokens=handoff.least.count,
                    easy=handoff.easy.fraction,
                    hold_ns=handoff.hold.ns,
                ),
            ),
            first_token=self.first_token,
            memory=DeviceLimits(
                relay_bytes=0 if memory.relay is None else memory.relay.bytes,
                decode_bytes=0 if memory.decode is None else memory.decode.bytes,
                reserve=memory.reserve,
                headroom_tokens=memory.headroom.count,
            ),
            admission=Admission(
                router_requests=self.admission.router,
                prefill_requests=self.admission.prefill,
                decode_requests=self.admission.decode,
            ),
            chunk_tokens=self.queue.chunk.count,
            prefill_batch=self.queue.batch,
            match_timeout_ns=self.match_timeout.ns,
            rtt_ns=rtt_ns,
            documents=documents,
            site_of=site_of,
            most_sequences=most_sequences,
            leg_payload_bps=leg_payload_bps,
        )


def _instance(name: InstanceName, seed: int) -> InstanceRule:
    match name:
        case "random":
            return RandomInstance(seed=seed)
        case "least-loaded":
            return LeastLoaded()
        case "session-sticky":
            return SessionSticky(seed=seed)
        case "longest-prefix":
            return LongestPrefix()
