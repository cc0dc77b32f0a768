"""The lab kernel's options: read lab.config, and tell which of them a build lacks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from testbed.errors import UsageError

Version = tuple[int, int]

_SET = re.compile(r"(CONFIG_[A-Z0-9_]+)=(\S+)(?:\s+# since (\d+)\.(\d+))?")
_UNSET = re.compile(r"# (CONFIG_[A-Z0-9_]+) is not set")


@dataclass(frozen=True, slots=True)
class Option:
    """One line of a kernel configuration; ``value`` is None where it must be off."""

    name: str
    value: str | None
    since: Version | None = None

    def __str__(self) -> str:
        return f"# {self.name} is not set" if self.value is None else f"{self.name}={self.value}"


def parse(text: str) -> tuple[Option, ...]:
    """Reads a configuration; comments are skipped, anything else unknown is refused."""
    found: list[Option] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if match := _SET.fullmatch(line):
            name, value, major, minor = match.groups()
            since = None if major is None else (int(major), int(minor))
            found.append(Option(name, value, since))
        elif match := _UNSET.fullmatch(line):
            found.append(Option(match[1], None))
        elif line and not line.startswith("#"):
            raise UsageError(
                "read kernel options", f"line {number}", f"{line!r} is no option",
                "write CONFIG_NAME=value or # CONFIG_NAME is not set",
            )  # fmt: skip
    return tuple(found)


def lab_options() -> tuple[Option, ...]:
    """The options that ship with the product."""
    return parse(resources.files(__package__).joinpath("lab.config").read_text("ascii"))


def known_to(options: tuple[Option, ...], version: Version) -> tuple[Option, ...]:
    """Those options that a kernel of this version has."""
    return tuple(o for o in options if o.since is None or o.since <= version)


def fragment(options: tuple[Option, ...]) -> str:
    """The text that ``make allnoconfig`` takes through KCONFIG_ALLCONFIG."""
    return "".join(f"{option}\n" for option in options)


def missing(wanted: tuple[Option, ...], final: str) -> tuple[Option, ...]:
    """The wanted options that the final ``.config`` does not have as asked.

    An option that must be off may be absent altogether.
    """
    values = {option.name: option.value for option in _lenient(final)}
    return tuple(o for o in wanted if values.get(o.name) != o.value)


def _lenient(text: str) -> tuple[Option, ...]:
    """Like ``parse``, for Kconfig's own output, whose string values hold spaces."""
    found: list[Option] = []
    for line in text.splitlines():
        if match := _UNSET.fullmatch(line):
            found.append(Option(match[1], None))
        elif line.startswith("CONFIG_"):
            name, _, value = line.partition("=")
            found.append(Option(name, value))
    return tuple(found)
