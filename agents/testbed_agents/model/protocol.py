"""The seam between agents and models: what a model can do, without torch.

``KV`` is opaque to an agent apart from its length and its bytes; a fake model can use
any class that has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from testbed_agents.model.layout import KvLayout


class KvRows(Protocol):
    """KV of consecutive tokens of one sequence. Rows are never changed once written."""

    @property
    def length(self) -> int:
        """Tokens held."""
        ...

    def prefix(self, length: int) -> Self:
        """The first ``length`` rows, shared, not copied; appending to either is safe."""
        ...

    def join(self, tail: Self) -> Self:
        """These rows followed by ``tail``'s, shared, not copied."""
        ...

    def block_bytes(self, index: int, block_tokens: int) -> memoryview:
        """The exact bytes of block ``index``."""
        ...


K = TypeVar("K", bound=KvRows)


@dataclass(frozen=True, slots=True)
class Step(Generic[K]):
    """Feed ``tokens`` to the sequence whose rows so far are ``kv``; ``kv`` grows by them.

    The position that is sampled follows from ``kv``'s length, so that two engines
    cannot disagree about it.
    """

    kv: K
    tokens: tuple[int, ...]
    request: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One output token, and how far its score lay above the runner-up's (logits)."""

    token: int
    gap: float


class Model(Protocol[K]):
    """A causal language model. Every method is a pure function of weights and inputs."""

    @property
    def layout(self) -> KvLayout:
        """Where numbers lie in a row of KV."""
        ...

    def prefill(self, tokens: Sequence[int], past: K | None = None) -> K:
        """KV of ``tokens`` alone, computed behind ``past``, which stays as it is."""
        ...

    def decode(self, batch: Sequence[Step[K]]) -> tuple[Choice, ...]:
        """One pass for all steps; the choice after each step's last token."""
        ...

    def extend(self, step: Step[K]) -> tuple[Choice, ...]:
        """One pass over several tokens (extend-decode): the choice after each of them."""
        ...

    def restore(self, blocks: Iterable[bytes | bytearray | memoryview]) -> K:
        """KV from the bytes of its blocks, bit for bit."""
        ...
