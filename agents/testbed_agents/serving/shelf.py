"""The prompts of a decode instance: its prefix cache, and KV as its model wants it."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.contract.serving import FirstToken, Serving
from testbed.errors import AgentError
from testbed_agents.cache import RadixCache, Refusal, Reservation
from testbed_agents.model.engine import Engine
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_prompts
from testbed_agents.runtime import Runtime
from testbed_agents.serving.held import Held
from testbed_agents.serving.prompt import read_prompt
from testbed_agents.serving.record import close_cache, emit_matched, emit_published, emit_reserved
from testbed_agents.serving.rows import Piece, join, load_documents, pieces


class Shelf:
    """See the module.

    Args:
        budget_bytes: of the cache.
        quiet: it is switched off, and writes no events.
    """

    def __init__(
        self, runtime: Runtime, serving: Serving, model: Engine, budget_bytes: int,
        quiet: bool = False,
    ) -> None:  # fmt: skip
        config = runtime.config
        self._shape = config.shape
        self._events = runtime.events
        self._model = model
        self._block = config.shape.block_tokens // config.shape.ratio
        self._prompts = load_prompts(config.model, config.seed)
        self._cache: RadixCache[Piece] = RadixCache(
            budget_bytes, config.shape.block_tokens * config.shape.bytes_per_token
        )
        self._quiet = quiet
        self._behind = int(serving.first_token is not FirstToken.PREFILL)
        if not quiet:
            load_documents(self._cache, model, self._prompts, config.shape, serving.documents)

    def take(self, req: int, segments: Sequence[int], lengths: Sequence[int], coming: bool) -> Held:
        """Match a prompt, lock what is there, and set room aside for the rest, if it is coming.

        Nothing makes room for what will not come.
        """
        prompt = read_prompt(self._prompts, self._shape, req, segments, lengths)
        match = self._cache.match(prompt.keys)
        if not self._quiet:
            emit_matched(self._events, self._cache, req, match.blocks, prompt)
        missing = prompt.blocks - match.blocks
        room = self._cache.reserve(missing) if coming else Refusal.TOO_LARGE
        if not self._quiet:
            emit_reserved(self._events, self._cache, req, missing, room)
        return Held(prompt, match, room)

    def load(self, req: int, held: Held) -> bool:
        """Put rows for the device together; False where that was done before (a preemption).

        The last token's row is left out, to be fed again, unless P has chosen what follows it.

        Raises:
            AgentError: the prompt's KV is not on the host: a defect of the agent.
        """
        first = not held.parts
        self.gather(req, held)
        kv = join(Kv(self._model.layout), held.parts, self._block)
        held.kv = kv.prefix(kv.length - self._behind)
        return first

    def gather(self, req: int, held: Held) -> None:
        """Put the prompt's blocks together; ``load`` does it where that was not done.

        Raises:
            AgentError: the prompt's KV is not on the host: a defect of the agent.
        """
        if held.received is None:
            raise AgentError("gather KV", f"request {req}", "its KV is not here")
        if not held.parts:
            held.parts = (*held.match.values, *pieces(held.received, self._block))

    def publish(self, req: int, held: Held) -> None:
        """Let the prompt's verified blocks be found, where room was set aside for them."""
        if isinstance(held.room, Reservation):
            published = self._cache.publish(held.prompt.keys, held.parts, held.room)
            emit_published(self._events, self._cache, req, published)

    def close(self, under_way: int) -> None:
        """The last word of the cache; raises AgentError where something leaked."""
        if not self._quiet:
            close_cache(self._events, self._cache, under_way)
