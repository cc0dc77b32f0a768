"""Which labs and clocks work here: a pure function of the findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from testbed.host.finding import Fact, Finding, Level

_GUEST = frozenset(
    {
        Fact.ARCHITECTURE,
        Fact.PYTHON,
        Fact.PACKAGES,
        Fact.KERNEL,
        Fact.BOOT,
        Fact.MEMORY,
        Fact.DISK,
        Fact.MAPPINGS,
        Fact.TORCH,
    }
)
_HOST = frozenset({Fact.PYTHON, Fact.PACKAGES, Fact.TORCH, Fact.ROOT, Fact.NETEM})

_LACKING = (Level.ABSENT, Level.MISSING)


class State(StrEnum):
    """What a user can expect."""

    WORKS = "works"
    MISSING = "missing"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class Mode:
    """A lab under a clock, on the guest's or the host's kernel, and what it needs."""

    lab: str
    clock: str
    on: str
    needs: frozenset[Fact]
    built: bool
    """Whether this version of the product has it."""


MODES = (
    Mode("mininet", "virtual", "guest", _GUEST, built=True),
    Mode("mininet", "real", "guest", _GUEST, built=True),
    Mode("mininet", "real", "host", _HOST, built=True),
    Mode("compose", "virtual", "guest", _GUEST | {Fact.CONTAINERS}, built=True),
    Mode("compose", "real", "host", _HOST | {Fact.ENGINE}, built=False),
)


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a mode works here; if not, why, and the first command that helps."""

    mode: Mode
    state: State
    missing: tuple[Fact, ...] = ()
    remedy: str = ""


def support(findings: tuple[Finding, ...]) -> tuple[Support, ...]:
    """One row a mode, the default mode first."""
    return tuple(_support(mode, findings) for mode in MODES)


def default_works(rows: tuple[Support, ...]) -> bool:
    """Whether the mode that a plain ``testbed run`` uses works."""
    return rows[0].state is State.WORKS


def _support(mode: Mode, findings: tuple[Finding, ...]) -> Support:
    if not mode.built:
        return Support(mode, State.PLANNED)
    lacking = tuple(f for f in findings if f.fact in mode.needs and f.level in _LACKING)
    if not lacking:
        return Support(mode, State.WORKS)
    return Support(mode, State.MISSING, tuple(f.fact for f in lacking), lacking[0].remedy)
