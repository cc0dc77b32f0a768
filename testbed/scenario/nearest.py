"""Wording of messages: the nearest known name, the list of them, and echoes that stay short."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

ECHO = 80
"""Characters of an author's text that a message repeats at most."""


def brief(text: str) -> str:
    """``text`` as a message may echo it: at most ``ECHO`` characters."""
    return text if len(text) <= ECHO else f"{text[: ECHO - 1]}…"


def listing(wrong: str, known: Iterable[str]) -> str:
    """``unknown name 'x'; did you mean 'y'? known: …``."""
    names = sorted(known)
    close = get_close_matches(wrong, names, n=1, cutoff=0.6)
    hint = f" did you mean {close[0]!r}?" if close else ""
    return f"unknown name {brief(wrong)!r};{hint} known: {', '.join(names) or 'none'}"


def unknown_key(wrong: str, known: Iterable[str]) -> str:
    """``unknown key; did you mean 'y'?`` or the list where nothing is near."""
    names = sorted(known)
    close = get_close_matches(wrong, names, n=1, cutoff=0.6)
    if close:
        return f"unknown key; did you mean {close[0]!r}?"
    return f"unknown key; known: {', '.join(names)}" if names else "unknown key"
