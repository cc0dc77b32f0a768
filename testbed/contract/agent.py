"""The one file an agent reads: who it is, whom it talks to, what it emulates."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from testbed.contract.record import Record
from testbed.contract.role import Role

PROTOCOL = 1
"""Version of control messages, wire frames and this file; a mismatch is refused."""


class Peer(Record):
    """Another agent: its address and ports (control over ZeroMQ, data over TCP)."""

    name: str
    role: Role
    address: str
    control_port: int = Field(gt=0, lt=65_536)
    data_port: int = Field(gt=0, lt=65_536)


class ModelConfig(Record):
    """Which real model runs. ``weights`` is a flat file for ``smollm2-135m``."""

    name: Literal["nano", "smollm2-135m"]
    seed: int = 0
    weights: str | None = None
    sampling: Literal["greedy", "seeded"] = "seeded"


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
    decode(b, k) = decode_base_s + b * decode_sequence_s + k * decode_context_s
    with b sequences in the batch and k context tokens over all of them.
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


class Pool(Record):
    """The connection pool of one (sender, receiver) pair.

    Acquisition is first come, first served; at most ``queue`` transfers wait, each at
    most ``acquire_timeout_ns``. Connection i binds source port ``source_port + i``.
    """

    size: int = Field(gt=0, le=4096)
    queue: int = Field(ge=0)
    acquire_timeout_ns: int = Field(gt=0)
    transfer_timeout_ns: int = Field(gt=0)
    chunk_bytes: int = Field(gt=0, le=64 * 1024 * 1024)
    source_port: int = Field(gt=1023, lt=65_536)


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


class AgentConfig(Record):
    """All that one agent knows. Times are nanoseconds; ``barrier_ns`` is CLOCK_REALTIME."""

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
    tcp: Tcp
    verify: Literal["substance", "all"] = "substance"
    workload: str | None = None
    """Path of ``workload.jsonl`` (clients only)."""
    prompt_tokens: int = Field(gt=0)
    """Longest emulated prompt of the workload; sizes the shared base document."""
    closed_loop: int | None = None
    """Number of concurrent users; None is an open loop (``at_ns`` of each request)."""
    events: str
    """Path of this agent's event file."""


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
