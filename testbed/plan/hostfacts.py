"""What planning knows of the machine: read elsewhere, compared here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The host as far as a plan depends on it.

    Attributes:
        cores: usable CPU cores.
        memory_free_bytes: memory that a run may take.
        disk_free_bytes: free space where run folders go.
        max_map_count: ``vm.max_map_count``; each guest page may take one mapping.
    """

    cores: int
    memory_free_bytes: int
    disk_free_bytes: int
    max_map_count: int = 65_530
