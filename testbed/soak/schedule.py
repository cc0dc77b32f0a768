"""A fault schedule and the scenario file that it makes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from testbed.scenario.ailments import OnAgents, OnPairs
from testbed.scenario.document import Plain
from testbed.scenario.flowfault import ResetFault, TrafficFault
from testbed.scenario.timed import OnLinks, OnNodes

Drawn: TypeAlias = OnLinks | OnNodes | OnAgents | OnPairs | ResetFault | TrafficFault
_LAST = ("at", "duration", "every", "times", "probability")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Faults in the order in which the file lists them."""

    faults: tuple[Drawn, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of its faults, each once, sorted."""
        return tuple(sorted({kind_word(fault) for fault in self.faults}))

    @property
    def lines(self) -> tuple[str, ...]:
        """Each fault as one line of YAML."""
        return tuple(line_of(fault) for fault in self.faults)


def kind_word(fault: Drawn) -> str:
    """The word by which files name its kind."""
    return str(keys_of_fault(fault)["kind"])


def keys_of_fault(fault: Drawn) -> dict[str, Plain]:
    """What a file says of it: no defaults, quantities as text."""
    keys: dict[str, Plain] = fault.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return keys


def line_of(fault: Drawn) -> str:
    """``{kind: …, link: …, …, at: …}``: what it is, on what, how much, when."""
    keys = keys_of_fault(fault)
    first = [key for key in ("kind", "link", "node", "pair", "direction") if key in keys]
    last = [key for key in _LAST if key in keys]
    middle = [key for key in keys if key not in first and key not in last]
    return _flow({key: keys[key] for key in (*first, *middle, *last)})


def _flow(value: Plain) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(_flow(item) for item in value)}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_flow(item)}' for key, item in value.items())}}}"
        case _:
            return str(value)


@dataclass(frozen=True, slots=True)
class Stage:
    """The scenario that schedules are put on.

    Attributes:
        name: how its file calls it; what ``extends`` names.
        own: the file, where it is none that ships with the testbed: written out in full then.
    """

    name: str
    own: Mapping[str, Plain] | None = None


def scenario_text(stage: Stage, schedule: Schedule, name: str, seed: int, comment: str) -> str:
    """A scenario file that ``testbed run`` takes.

    What the base expects is left out: it was written for a run without faults.

    Args:
        comment: its first lines, without the sign of a comment.
    """
    words = "Random faults of testbed soak on " + stage.name
    lines = [*(f"# {line}" for line in comment.splitlines())]
    if stage.own is None:
        lines += [f"extends: {stage.name}", f"name: {name}", f'description: "{words}"',
                  f"seed: {seed}", "expect: null"]  # fmt: skip
    else:
        own = {
            **{key: value for key, value in stage.own.items() if key not in ("expect", "faults")},
            "name": name, "description": words, "seed": seed,
        }  # fmt: skip
        lines += [f"{key}: {_quoted(value)}" for key, value in own.items()]
    lines.append("faults:" if schedule.faults else "faults: []")
    lines += [f"  - {line}" for line in schedule.lines]
    return "\n".join(lines) + "\n"


def _quoted(value: Plain) -> str:
    """Flow YAML in which all text is quoted, so that no word of it can be taken for a sign."""
    match value:
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        case list():
            return f"[{', '.join(_quoted(item) for item in value)}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_quoted(item)}' for key, item in value.items())}}}"
        case None:
            return "null"
        case _:
            return _flow(value)


def fingerprint(schedule: Schedule, seed: int) -> str:
    """What decides a run over one base: short, and the same for equal schedules and seeds."""
    text = "\n".join((str(seed), *schedule.lines))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
