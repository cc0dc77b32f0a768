"""Wording for names that do not exist: the nearest known one, and the list."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def listing(wrong: str, known: Iterable[str]) -> str:
    """``unknown name 'x'; did you mean 'y'? known: …``."""
    names = sorted(known)
    close = get_close_matches(wrong, names, n=1, cutoff=0.6)
    hint = f" did you mean {close[0]!r}?" if close else ""
    return f"unknown name {wrong[:60]!r};{hint} known: {', '.join(names) or 'none'}"


def unknown_key(wrong: str, known: Iterable[str]) -> str:
    """``unknown key; did you mean 'y'?`` or the list where nothing is near."""
    names = sorted(known)
    close = get_close_matches(wrong, names, n=1, cutoff=0.6)
    if close:
        return f"unknown key; did you mean {close[0]!r}?"
    return f"unknown key; known: {', '.join(names)}" if names else "unknown key"
