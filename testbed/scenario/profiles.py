"""The data behind a shape: KV-cache sizes, hardware times, facts of the real models.

Each file is read once a process.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, field_validator

from testbed.contract.agent import Hardware
from testbed.contract.record import Record
from testbed.scenario.data import DataKind, folder
from testbed.scenario.document import Document, read_document
from testbed.scenario.entry import Count, Line, Name
from testbed.scenario.faults import check
from testbed.scenario.impairment import Sourced
from testbed.units import Duration, Size

ModelName = Literal["nano", "smollm2-135m"]


class KvPrecision(Record):
    """Bytes of one precision: per token of context, and once per request."""

    bytes_per_token: Sourced[Size]
    fixed: Sourced[Size] | None = None


class KvProfile(Record):
    """KV-cache size of a public model."""

    description: Line
    precisions: dict[Name, KvPrecision] = Field(min_length=1)


class KvFile(Record):
    """``profiles/kv.yaml``."""

    profiles: dict[Name, KvProfile]


class HardwareProfile(Record):
    """Times of prefill and decode, see :class:`testbed.contract.agent.Hardware`.

    ``prefill_attention`` is per 2^20 pairs of tokens and ``copy_volume`` per GiB: a single
    pair or byte takes less than the 1 ns that a duration can hold. What is left out takes
    no time, and is not limited.
    """

    description: Line
    source: Line
    prefill_base: Duration
    prefill_token: Duration
    prefill_attention: Duration
    decode_base: Duration
    decode_sequence: Duration
    decode_context: Duration
    """Per 2^20 tokens of context in the batch."""
    max_batch: Count = 256
    prefill_floor: Duration | None = None
    """A prefill takes at least this on top of ``prefill_base``: reading the weights."""
    decode_extra_token: Duration | None = None
    """Per token of extend-decode beyond one a sequence."""
    extend_width: Count | None = None
    """Most tokens that one step of extend-decode feeds to one sequence."""
    copy_base: Duration | None = None
    """Fixed time of one copy of KV between host and device, one way."""
    copy_volume: Duration | None = None
    """Per GiB copied between host and device, one way."""
    kv_memory: Size | None = None
    """Device memory of the whole instance that is left for KV."""

    @field_validator("kv_memory")
    @classmethod
    def _memory_is_some(cls, memory: Size | None) -> Size | None:
        if memory is not None and memory.bytes == 0:
            raise ValueError("must be above 0; leave it out where it is not limited")
        return memory

    def resolve(self, name: str) -> Hardware:
        """The profile in seconds per token, per pair and per step."""
        return Hardware(
            name=name,
            source=self.source,
            prefill_base_s=self.prefill_base.seconds,
            prefill_token_s=self.prefill_token.seconds,
            prefill_attention_s=self.prefill_attention.seconds / 2**20,
            decode_base_s=self.decode_base.seconds,
            decode_sequence_s=self.decode_sequence.seconds,
            decode_context_s=self.decode_context.seconds / 2**20,
            max_batch=self.max_batch,
            prefill_floor_s=_seconds(self.prefill_floor),
            decode_extra_token_s=_seconds(self.decode_extra_token),
            extend_width=self.extend_width or 0,
            copy_base_s=_seconds(self.copy_base),
            copy_byte_s=_seconds(self.copy_volume) / 2**30,
            kv_memory_bytes=self.kv_memory.bytes if self.kv_memory else 0,
        )


class HardwareFile(Record):
    """``profiles/hardware.yaml``."""

    profiles: dict[Name, HardwareProfile]


class ModelFacts(Record):
    """What planning must know of a model without loading it."""

    description: Line
    kv_per_real_token: Sourced[Size]
    """Bytes of real KV tensors per real token: the substance."""
    memory: Sourced[Size]
    """Memory that all agents share for the weights."""
    agent_memory: Sourced[Size]
    """Memory that one more agent adds."""
    wall_per_token: Sourced[Duration]
    """Wall time of one real forward pass in the guest, pinned to one core."""
    wall_load: Sourced[Duration]
    """Wall time until the model is loaded in the guest."""
    context: Annotated[int, Field(strict=True, ge=1)]
    """Longest sequence in real tokens (prompt and answer)."""
    sampling: Literal["greedy", "seeded"]
    vocabulary: Annotated[int, Field(strict=True, ge=1)]
    """Token ids are below it."""
    eos: tuple[Annotated[int, Field(strict=True, ge=0)], ...] = ()
    """Tokens by which the model itself ends an answer; none where it knows no end."""


class ModelFile(Record):
    """``profiles/models.yaml``."""

    models: dict[ModelName, ModelFacts]


@cache
def kv_profiles() -> KvFile:
    """All KV profiles. Raises ScenarioError."""
    return check(_document("kv"), KvFile)


@cache
def hardware_profiles() -> HardwareFile:
    """All hardware profiles. Raises ScenarioError."""
    return check(_document("hardware"), HardwareFile)


@cache
def model_facts() -> ModelFile:
    """Facts of all models. Raises ScenarioError."""
    return check(_document("models"), ModelFile)


def _seconds(duration: Duration | None) -> float:
    return duration.seconds if duration is not None else 0.0


def _document(name: str) -> Document:
    return read_document(folder(DataKind.PROFILES) / f"{name}.yaml")
