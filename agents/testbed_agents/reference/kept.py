"""References of earlier runs: two runs that ask one model the same need one computation.

A study asks the same requests through several networks. The key is a digest of all that
the answers depend on: requests, seeds, model and weights, the code that computes, torch
and the instruction set. Files lie in ``<cache>/references``; the eldest leave when they
take more than ``KEPT_MAX`` bytes.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import tempfile
from pathlib import Path
from typing import Final

import testbed_agents.model
import testbed_agents.reference
from testbed_agents.model.cpu import PINNED
from testbed_agents.model.flatfile import cache_folder, flat_path, read_header
from testbed_agents.reference.question import Question

KEPT_MAX: Final = 1 << 29
"""Bytes of all kept references together."""


def key_of(question: Question, weights: Path | None) -> str:
    """A digest of everything that the answers depend on.

    Raises:
        AgentError: the weights are missing or damaged.
    """
    digest = hashlib.sha256()
    for package in (testbed_agents.model, testbed_agents.reference):
        for folder in package.__path__:
            for path in sorted(Path(folder).glob("*.py")):
                digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    facts = [
        importlib.metadata.version("torch"),
        *(f"{name}={os.environ.get(name)}" for name in sorted(PINNED)),
        question.model.model_copy(update={"weights": None}).model_dump_json(),
        f"{question.seed} {question.ratio} {question.document_tokens}",
    ]
    if question.model.name != "nano":
        facts.append(read_header(weights or flat_path(question.model.name)).model_dump_json())
    facts += [
        f"{one.id} {one.input_tokens} {one.hit_tokens} {one.output_tokens} "
        f"{[(span.segment, span.tokens) for span in one.prompt]}"
        for one in question.requests
    ]
    digest.update("\n".join(facts).encode())
    return digest.hexdigest()


def recall(key: str) -> str | None:
    """What was kept under a key; None where nothing was, or it was cut short."""
    path = _folder() / key
    try:
        head, _, content = path.read_text(encoding="utf-8").partition("\n")
        if head != hashlib.sha256(content.encode()).hexdigest():
            return None
        os.utime(path)
    except OSError:
        return None
    return content


def keep(key: str, content: str) -> None:
    """Keep a reference, and let the eldest go; a cache that cannot be written keeps nothing."""
    folder = _folder()
    head = hashlib.sha256(content.encode()).hexdigest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(f"{head}\n{content}")
        os.replace(name, folder / key)
        _trim(folder)
    except OSError:
        return


def _trim(folder: Path) -> None:
    found = sorted(
        ((path.stat().st_mtime, path.stat().st_size, path) for path in folder.iterdir()),
        reverse=True,
    )
    total = 0
    for _, size, path in found:
        total += size
        if total > KEPT_MAX:
            path.unlink(missing_ok=True)


def _folder() -> Path:
    return cache_folder() / "references"
