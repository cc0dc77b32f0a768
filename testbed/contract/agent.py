"""The one file an agent reads: who it is, whom it talks to, what it emulates."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from testbed.contract.defect import Defect
from testbed.contract.fault import AgentFault
from testbed.contract.guard import UNGUARDED, Guard
from testbed.contract.pool import Pool
from testbed.contract.record import Record
from testbed.contract.role import Role
from testbed.contract.serving import Serving
from testbed.contract.trigger import Watch

PROTOCOL = 1
"""Version of control messages, wire frames and this file; a mismatch is refused."""

CONTROL_PORT, DATA_PORT = 7000, 7001
"""On which every agent listens: control over ZeroMQ, data over TCP."""


class Peer(Record):
    """Another agent: its address and ports (control over ZeroMQ, data over TCP)."""

    name: str
    role: Role
    address: str
    control_port: int = Field(gt=0, lt=65_536)
    data_port: int = Field(gt=0, lt=65_536)


def _has_none(tokens: tuple[int, ...]) -> bool:
    return not tokens


def _is_one(value: float) -> bool:
    return value == 1


class ModelConfig(Record):
    """Which real model runs. ``weights`` is a flat file for ``smollm2-135m``."""

    name: Literal["nano", "smollm2-135m"]
    seed: int = 0
    weights: str | None = None
    sampling: Literal["greedy", "seeded"] = "seeded"
    stop: tuple[int, ...] = Field(default=(), exclude_if=_has_none)
    """Tokens that end an answer, which has them as its last."""


class Shape(Record):
    """The emulated shape: how many bytes and how much time stand for a token.

    ``block_tokens`` / ``ratio`` real tokens make one cache block; the plan has
    checked that it is a whole number and that the substance fits into the bytes.
    """

    block_tokens: int = Field(gt=0)
    ratio: int = Field(gt=0)
    bytes_per_token: int = Field(gt=0)
    fixed_bytes: int = Field(default=0, ge=0)


class Hardware(Record):
    """A hardware profile: time of one prefill and of one decode step, in seconds.

    prefill(u, c) = prefill_base_s + u * prefill_token_s + u * (c + u/2) * prefill_attention_s
    with u uncached tokens and c cached context tokens;
    and at least prefill_base_s + prefill_floor_s (the weights are read once a pass);
    decode(b, k, e) = decode_base_s + b * decode_sequence_s + k * decode_context_s
    + e * decode_extra_token_s with b sequences in the batch, k context tokens over all of
    them and e tokens fed beyond one a sequence (extend-decode);
    copy(n) = copy_base_s + n * copy_byte_s for n bytes between host and device, one way.
    """

    name: str
    source: str
    prefill_base_s: float = Field(ge=0)
    prefill_token_s: float = Field(ge=0)
    prefill_attention_s: float = Field(ge=0)
    decode_base_s: float = Field(ge=0)
    decode_sequence_s: float = Field(ge=0)
    decode_context_s: float = Field(ge=0)
    max_batch: int = Field(default=256, gt=0)
    prefill_floor_s: float = Field(default=0.0, ge=0)
    decode_extra_token_s: float = Field(default=0.0, ge=0)
    extend_width: int = Field(default=0, ge=0)
    """Most tokens that one step feeds to one sequence; 0 is no limit."""
    copy_base_s: float = Field(default=0.0, ge=0)
    copy_byte_s: float = Field(default=0.0, ge=0)
    kv_memory_bytes: int = Field(default=0, ge=0)
    """Device memory for KV; 0 is no limit."""


class Tcp(Record):
    """Socket options of every data connection."""

    congestion: Literal["cubic", "bbr", "reno", "dctcp"] = "cubic"
    send_buffer: int = Field(gt=0)
    receive_buffer: int = Field(gt=0)
    receive_low_water: int = Field(gt=0)
    slow_start_after_idle: bool = True


class Window(Record):
    """Phases after the barrier: warm-up, measuring window, drain (nanoseconds)."""

    warm_up_ns: int = Field(ge=0)
    measure_ns: int = Field(gt=0)
    drain_ns: int = Field(gt=0)

    @property
    def begin_ns(self) -> int:
        """Start of the measuring window, relative to the barrier."""
        return self.warm_up_ns

    @property
    def end_ns(self) -> int:
        """End of the measuring window, relative to the barrier; arrivals end here too."""
        return self.warm_up_ns + self.measure_ns

    @property
    def deadline_ns(self) -> int:
        """Everything must be answered by then, or is reported failed."""
        return self.warm_up_ns + self.measure_ns + self.drain_ns


def _is_zero(value: int) -> bool:
    return value == 0


def _is_false(value: bool) -> bool:
    return not value


def _is_without_faults(faults: tuple[AgentFault, ...]) -> bool:
    return not faults


def _is_unguarded(guard: Guard) -> bool:
    return guard == UNGUARDED


def _has_no_defects(defects: tuple[Defect, ...]) -> bool:
    return not defects


def _is_without_watches(watches: tuple[Watch, ...]) -> bool:
    return not watches


class AgentConfig(Record):
    """All that one agent knows. Times are emulated ns; ``barrier_ns`` is CLOCK_REALTIME."""

    protocol: int = PROTOCOL
    node: str
    role: Role
    seed: int
    barrier_ns: int
    window: Window
    address: str
    control_port: int
    data_port: int
    peers: tuple[Peer, ...]
    model: ModelConfig
    shape: Shape
    hardware: Hardware
    pool: Pool
    guard: Guard = Field(default=UNGUARDED, exclude_if=_is_unguarded)
    tcp: Tcp
    verify: Literal["substance", "all"] = "substance"
    workload: str | None = None
    """Path of ``workload.jsonl`` (clients only)."""
    prompt_tokens: int = Field(gt=0)
    """Longest emulated prompt of the workload; sizes the shared base document."""
    closed_loop: int | None = None
    """Users of this client at a time; None is an open loop (``at_ns`` of each request)."""
    turn: tuple[int, int] = (0, 1)
    """Clients share the workload: (n, of) sends the requests n, n + of, n + 2 of …"""
    events: str
    """Path of this agent's event file."""
    slow: float = Field(default=1.0, ge=1, exclude_if=_is_one)
    """Seconds of CLOCK_REALTIME that one emulated second takes; all other times are emulated."""
    incarnation: int = Field(default=0, ge=0, exclude_if=_is_zero)
    """Which life of this agent it is: one that was started anew is another agent."""
    faults: tuple[AgentFault, ...] = Field(default=(), exclude_if=_is_without_faults)
    """What this agent does to itself, and when."""
    defects: tuple[Defect, ...] = Field(default=(), exclude_if=_has_no_defects)
    """Protections that are off."""
    watches: tuple[Watch, ...] = Field(default=(), exclude_if=_is_without_watches)
    """What this agent sees first of all, as the sender, for faults that wait for it."""
    mortal: bool = Field(default=False, exclude_if=_is_false)
    """Whether a fault kills it: then it writes each event down at once, and loses none."""
    serving: Serving | None = None
    """None: the workload names the instances and says what is cached (pool studies)."""

    def guards(self, protection: Defect) -> bool:
        """Whether a protection is on."""
        return protection not in self.defects


class Span(Record):
    """A run of prompt tokens: the first ``tokens`` of one segment.

    The real tokens of a segment are a prefix-stable function of (run seed, segment), so
    that prompts which begin with equal spans begin with equal tokens.
    """

    segment: int = Field(ge=0, lt=2**63)
    tokens: int = Field(gt=0)
    """Emulated tokens, a multiple of the block."""


def _is_none(value: int | None) -> bool:
    return value is None


def _is_empty(spans: tuple[Span, ...]) -> bool:
    return not spans


class Request(Record):
    """One line of ``workload.jsonl``: the emulated shape of one request.

    ``hit_tokens`` is a multiple of the block; ``input_tokens - hit_tokens`` tokens
    are uncached, make ``blocks`` cache blocks and ``wire_bytes`` payload bytes.
    """

    id: int = Field(ge=0)
    at_ns: int = Field(ge=0)
    """Arrival, relative to the barrier; 0 in a closed loop."""
    input_tokens: int = Field(gt=0)
    hit_tokens: int = Field(ge=0)
    output_tokens: int = Field(gt=0)
    blocks: int = Field(ge=0)
    wire_bytes: int = Field(ge=0)
    prefill: str
    """Name of the P that serves it."""
    decode: str
    """Name of the MD that serves it."""
    prompt: tuple[Span, ...] = Field(default=(), exclude_if=_is_empty)
    """Spans in order, ``input_tokens`` in all; empty (and not written) where every
    prompt begins with the one base document."""

    session: int | None = Field(default=None, ge=0, exclude_if=_is_none)
    """Which conversation it belongs to; None (and not written) where there are none."""

    @model_validator(mode="after")
    def _spans_make_the_input(self) -> Self:
        if self.prompt and sum(span.tokens for span in self.prompt) != self.input_tokens:
            raise ValueError("the spans of prompt do not add up to input_tokens")
        return self
