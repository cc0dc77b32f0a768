"""Paths inside the guest: fixed, because another path shifts the timeline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunPaths:
    """Where an agent finds its files.

    Attributes:
        run: the run folder as agents see it.
        weights: flat weights file as agents see it, for models that have one.
    """

    run: str = "/mnt/run"
    weights: str | None = None

    @property
    def workload(self) -> str:
        """The requests, one a line."""
        return f"{self.run}/workload.jsonl"

    def events(self, node: str) -> str:
        """The event file of one node."""
        return f"{self.run}/events/{node}.jsonl"
