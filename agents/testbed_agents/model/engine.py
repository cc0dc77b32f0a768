"""The engine: one packed forward pass of a Llama over sequences of any lengths.

All tokens of a batch go through the linear layers together, ``[tokens, hidden]``;
attention runs sequence by sequence over that sequence's own KV rows, so there is no
padding and no mask between sequences.

Keys travel *before* rotation and are turned by the row they lie in when a sequence is
continued (``turned``). If turned keys travelled, as in most engines, attention would not
notice rows in the wrong order, and a block applied at the wrong place would leave every
token as it was. Pure of I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import torch
from torch.nn import functional

from testbed.errors import AgentError
from testbed_agents.model.attention import attention, of_one
from testbed_agents.model.kv import Kv
from testbed_agents.model.layout import KvLayout
from testbed_agents.model.protocol import Choice, Step
from testbed_agents.model.rope import RopeTable, rotate
from testbed_agents.model.sampling import choose, gumbel_rows
from testbed_agents.model.turned import Cache, Turned
from testbed_agents.model.weights import DTYPES, LayerWeights, Weights


def use_threads(count: int) -> None:
    """Lets numeric code of this process use ``count`` threads; tokens do not depend on it."""
    torch.set_num_threads(count)


class Engine:
    """See ``protocol.Model``.

    Args:
        weights: all tensors; kept, not copied.
        seed: seed of the sampling noise.
        sampling: ``greedy``, or ``seeded`` by Gumbel noise per position.
    """

    def __init__(self, weights: Weights, seed: int, sampling: Literal["greedy", "seeded"]) -> None:
        self._weights = weights
        self._seed = seed
        self._sampling = sampling
        self._rope = RopeTable(weights.shape)
        self._progress: Callable[[], None] | None = None

    def watch(self, progress: Callable[[], None] | None) -> None:
        """Call ``progress`` after every layer from now on: for models whose passes take long."""
        self._progress = progress

    @property
    def layout(self) -> KvLayout:
        """Where numbers lie in a row of KV."""
        return self._weights.shape.layout

    @property
    def weights(self) -> Weights:
        """The tensors, for the yardstick in ``llama``."""
        return self._weights

    @torch.inference_mode()
    def prefill(self, tokens: Sequence[int], past: Kv | None = None) -> Kv:
        """KV of ``tokens`` alone, computed behind ``past``, which stays as it is."""
        behind = Kv(self.layout) if past is None else past
        if not tokens:
            return Kv(self.layout)
        rows, _ = self._forward([(behind, tokens)], with_output=False)
        return Kv(self.layout, (rows,))

    @torch.inference_mode()
    def decode(self, batch: Sequence[Step[Kv]]) -> tuple[Choice, ...]:
        """One pass for all steps; the choice after each step's last token.

        Raises:
            AgentError: a step has no token, or two steps grow one sequence.
        """
        if not batch:
            return ()
        hidden = self._advance(batch)
        ends: list[int] = []
        end = 0
        for step in batch:
            end += len(step.tokens)
            ends.append(end - 1)
        keys = [(step.request, step.kv.length) for step in batch]
        return self._sample(self._logits(hidden[ends]), keys)

    @torch.inference_mode()
    def extend(self, step: Step[Kv]) -> tuple[Choice, ...]:
        """One pass over several tokens (extend-decode): the choice after each of them.

        Raises:
            AgentError: the step has no token.
        """
        first = step.kv.length + 1
        hidden = self._advance([step])
        keys = [(step.request, first + offset) for offset in range(len(step.tokens))]
        return self._sample(self._logits(hidden), keys)

    @torch.inference_mode()
    def score(self, tokens: Sequence[int], past: Kv | None = None) -> torch.Tensor:
        """Logits after each token, ``[tokens, vocabulary]``; nothing is kept (for tests)."""
        behind = Kv(self.layout) if past is None else past
        _, hidden = self._forward([(behind, tokens)], with_output=True)
        return self._logits(hidden)

    def restore(self, blocks: Iterable[bytes | bytearray | memoryview]) -> Kv:
        """KV from the bytes of its blocks, bit for bit."""
        return Kv.from_blocks(self.layout, blocks)

    def _advance(self, batch: Sequence[Step[Kv]]) -> torch.Tensor:
        """Run a batch and let every sequence keep its new rows; hidden states of all tokens."""
        if len({id(step.kv) for step in batch}) != len(batch):
            raise AgentError("decode", "a batch", "two steps grow the same sequence")
        if not all(step.tokens for step in batch):
            raise AgentError("decode", "a batch", "a step brings no token")
        for step in batch:
            if step.kv.turned is None:
                step.kv.turned = self._turned(step.kv, step.kv.length + len(step.tokens))
        rows, hidden = self._forward([(step.kv, step.tokens) for step in batch], with_output=True)
        begin = 0
        for step in batch:
            end = begin + len(step.tokens)
            step.kv.append(rows[begin:end])
            if step.kv.turned is not None:  # written layer by layer on the way
                step.kv.turned.length = step.kv.length
            begin = end
        return hidden

    def _forward(
        self, work: Sequence[tuple[Kv, Sequence[int]]], with_output: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """New KV rows and hidden states of all tokens; work is (rows so far, new tokens).

        Without output the last layer stops at its keys and values: prefill needs no more.
        """
        shape = self._weights.shape
        tokens: list[int] = []
        positions: list[int] = []
        spans: list[tuple[int, int]] = []
        caches: list[Cache] = []
        for kv, new in work:
            spans.append((kv.length, kv.length + len(new)))
            tokens.extend(new)
            positions.extend(range(*spans[-1]))
            caches.append(self._turned(kv, spans[-1][1]).cache(*spans[-1]))
        cos, sin = self._rope.at(positions)
        hidden = self._weights.embedding[torch.tensor(tokens)]
        rows = torch.empty((len(tokens), *self.layout.row_shape), dtype=hidden.dtype)
        heads, turned = (
            shape.num_attention_heads,
            shape.num_attention_heads + shape.num_key_value_heads,
        )
        for index, layer in enumerate(self._weights.layers):
            normed = functional.rms_norm(
                hidden, (shape.hidden_size,), layer.input_norm, shape.rms_norm_eps
            )
            qkv = functional.linear(normed, layer.qkv).view(len(tokens), -1, shape.head_dim)
            rows[:, index] = qkv[:, heads:].view(len(tokens), *rows.shape[2:])
            if index + 1 == len(self._weights.layers) and not with_output:
                break
            both = rotate(qkv[:, :turned], cos, sin)
            mixed = self._attend(index, both, qkv[:, turned:], caches)
            hidden = hidden + functional.linear(mixed, layer.out)
            hidden = hidden + self._mlp(hidden, layer)
            if self._progress is not None:
                self._progress()
        return rows, hidden

    def _turned(self, kv: Kv, room: int) -> Turned:
        """All rows of ``kv`` as attention reads them, with room for ``room`` tokens."""
        turned = kv.turned
        if turned is None:
            turned = Turned(self.layout, room, DTYPES[self.layout.item_bytes])
        turned.reserve(room)
        if turned.length < kv.length:
            turned.take(kv.part(turned.length, kv.length).segments(), self._rope)
        return turned

    def _attend(
        self,
        index: int,
        turned: torch.Tensor,
        values: torch.Tensor,
        caches: Sequence[Cache],
    ) -> torch.Tensor:
        """Causal grouped-query attention of each sequence in one layer: ``[tokens, heads * dim]``.

        Args:
            index: of the layer.
            turned: queries and keys of all new tokens, ``[tokens, heads + kv heads, dim]``.
            values: ``[tokens, kv heads, dim]``.
            caches: of each sequence; the new tokens' keys and values are written there.
        """
        shape = self._weights.shape
        heads, kv_heads, dim = shape.num_attention_heads, shape.num_key_value_heads, shape.head_dim
        queries = turned[:, :heads] * dim**-0.5
        fresh = torch.cat((turned[:, heads:], values), 1).view(-1, 2, kv_heads, dim)
        singly = queries.view(-1, kv_heads, heads // kv_heads, dim).unbind(0)
        fresh_singly = fresh.unbind(0)
        outputs: list[torch.Tensor] = []
        begin = 0
        for cache in caches:
            end = begin + cache.count
            keys, kept = cache.seen[2 * index], cache.seen[2 * index + 1]
            if cache.count == 1:
                cache.places[index].copy_(fresh_singly[begin])
                outputs.append(of_one(singly[begin], keys, kept).view(1, heads * dim))
            else:
                cache.places[index].copy_(fresh[begin:end].permute(1, 2, 0, 3))
                outputs.append(attention(queries[begin:end], keys, kept))
            begin = end
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def _mlp(self, hidden: torch.Tensor, layer: LayerWeights) -> torch.Tensor:
        """The gated feed-forward part of a layer."""
        shape = self._weights.shape
        normed = functional.rms_norm(
            hidden, (shape.hidden_size,), layer.mlp_norm, shape.rms_norm_eps
        )
        gate, up = functional.linear(normed, layer.gate_up).chunk(2, dim=-1)
        return functional.linear(functional.silu(gate) * up, layer.down)

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        shape = self._weights.shape
        normed = functional.rms_norm(
            hidden, (shape.hidden_size,), self._weights.norm, shape.rms_norm_eps
        )
        return functional.linear(normed, self._weights.head)

    def _sample(self, logits: torch.Tensor, keys: Sequence[tuple[int, int]]) -> tuple[Choice, ...]:
        """Choices for rows of logits; keys are (request, position of the new token)."""
        if self._sampling == "greedy":
            return choose(logits)
        noise = gumbel_rows(self._seed, keys, logits.shape[-1]).to(logits.device)
        return choose(logits + noise)
