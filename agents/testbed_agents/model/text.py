"""Prompts in words, for models that can read: a chat with notes in front and a question.

::

    base document   system turn: note note note note …
    request         the first ``hit`` tokens of it, own notes, user turn: a question

Every prompt has exactly the wanted number of tokens; notes are cut to fit. If not even
the question fits behind the cached tokens, its beginning is lost.
"""

from __future__ import annotations

import random
from pathlib import Path

from tokenizers import Tokenizer

from testbed_agents.model.flatfile import read_tokenizer
from testbed_agents.model.prompt import check_prompt

_OPENING = "<|im_start|>system\nYou are a helpful assistant. Some notes:\n"
_CLOSING = "<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"

NOTES = (
    "A router forwards packets from one network to another.",
    "Light in glass fibre covers about two hundred kilometres in a millisecond.",
    "A queue that is never empty adds delay and no throughput.",
    "Rain falls when air cools and can no longer hold its water.",
    "A cache keeps what was used lately close at hand.",
    "The Moon circles the Earth once in about four weeks.",
    "Two hosts agree on a window before they send faster.",
    "Bread rises because yeast turns sugar into gas.",
    "A lost packet is sent again after a while.",
    "Rivers carry sand to the sea and build deltas there.",
)

QUESTIONS = (
    "What is the capital of France?",
    "How many days does a week have?",
    "What colour is the sky on a clear day?",
    "Which planet do we live on?",
    "What do bees make?",
    "Is ice colder than steam?",
)


class TextPrompts:
    """See ``prompt.Prompts``."""

    def __init__(self, seed: int, weights: Path) -> None:
        """Reads the tokenizer that lies behind the weights in the flat file."""
        self._seed = seed
        self._tokenizer = Tokenizer.from_buffer(read_tokenizer(weights))

    def base_document(self, length: int) -> tuple[int, ...]:
        """First ``length`` tokens of the shared document."""
        return self._notes(f"document/{self._seed}", length, opening=True)

    def prompt(self, request: int, hit: int, length: int) -> tuple[int, ...]:
        """All ``length`` tokens of a request, of which ``hit`` come from the document.

        Raises:
            AgentError: the lengths make no prompt.
        """
        check_prompt(request, hit, length)
        own = length - hit
        closing = self._encode(_CLOSING.format(QUESTIONS[request % len(QUESTIONS)]))
        closing = closing[max(0, len(closing) - own) :]
        notes = self._notes(f"suffix/{self._seed}/{request}", own - len(closing), opening=not hit)
        return self.base_document(hit) + notes + closing

    def spans(self, spans: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        """Tokens of spans (segment, tokens): notes of each segment, the first with the opening."""
        tokens: tuple[int, ...] = ()
        for segment, length in spans:
            tokens += self._notes(f"segment/{self._seed}/{segment}", length, opening=not tokens)
        return tokens

    def text(self, tokens: tuple[int, ...]) -> str:
        """Tokens as words, without the marks of the chat format."""
        decoded: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return decoded

    def _notes(self, purpose: str, length: int, opening: bool) -> tuple[int, ...]:
        """Notes in an order of their own until ``length`` tokens are full."""
        order = random.Random(purpose)
        tokens = list(self._encode(_OPENING)) if opening else []
        while len(tokens) < length:
            tokens += self._encode(" " + order.choice(NOTES))
        return tuple(tokens[:length])

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)
