"""The ``shape:`` part: which KV profile, hardware and ratio stand behind a token.

``bytes on the wire = fixed_bytes + bytes_per_token * uncached tokens`` comes from
``profiles/kv.yaml``; times come from ``profiles/hardware.yaml``.
"""

from __future__ import annotations

from pydantic import Field, field_validator

from testbed.contract.agent import Shape
from testbed.contract.record import Record
from testbed.scenario.entry import Count, HardwareName, Name
from testbed.units import Tokens

DEFAULT_BLOCK = Tokens(128)
DEFAULT_RATIO = 128


class ShapeChoice(Record):
    """Names of the profiles and the scale between emulated and real tokens."""

    kv: Name
    """A model of ``profiles/kv.yaml``."""
    precision: Name = "bf16"
    """A precision that the KV profile lists."""
    hardware: HardwareName
    """An accelerator of ``profiles/hardware.yaml``, or a file that holds one."""
    block: Tokens = Field(default=DEFAULT_BLOCK)
    """Emulated tokens of one cache block."""
    ratio: Count = DEFAULT_RATIO
    """Emulated prompt tokens that one real token stands for."""

    @field_validator("block")
    @classmethod
    def _a_block_has_tokens(cls, block: Tokens) -> Tokens:
        if block.count == 0:
            raise ValueError("must be above 0")
        return block

    def resolve(self, bytes_per_token: int, fixed_bytes: int) -> Shape:
        """The shape as agents and the workload see it, in integers."""
        return Shape(
            block_tokens=self.block.count,
            ratio=self.ratio,
            bytes_per_token=bytes_per_token,
            fixed_bytes=fixed_bytes,
        )
