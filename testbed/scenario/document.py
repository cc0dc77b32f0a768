"""Reading YAML as plain data with line numbers, and nothing else.

Only mappings with text keys, sequences and plain scalars pass. Anchors, aliases,
merge keys and tags are refused: they are how a small file becomes a large or an
executable one. Size, depth and node count are bounded.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionStartEvent, NodeEvent, ScalarEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from testbed.errors import ScenarioError
from testbed.scenario.nearest import brief

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
KeyPath: TypeAlias = tuple[str | int, ...]

MAX_BYTES = 256 * 1024
MAX_DEPTH = 12
MAX_NODES = 20_000
TAGGED = (ScalarEvent, CollectionStartEvent)
_CORE = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: its data and where each key stands.

    Attributes:
        name: path as the user knows it, used in messages.
        data: the top-level mapping.
        places: ``file:line`` (or ``--set``) of every key path.
        sources: other files that it was made from.
    """

    name: str
    data: dict[str, Plain]
    places: dict[KeyPath, str]
    sources: tuple[Path, ...] = ()

    def place(self, path: KeyPath) -> str:
        """Where ``path``, or the nearest parent that exists, was written."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return f"{self.name}:1"

    def fault(self, path: KeyPath, reason: str) -> str:
        """``file:line: key.path: reason``."""
        return _fault(self.place(path), path, reason)


def read_document(path: Path) -> Document:
    """Read the file at ``path``.

    Raises:
        ScenarioError: unreadable, no regular file, not UTF-8, too large, not YAML, or not
            plain data.
    """
    name = str(path)
    try:
        kind = _other_kind(path)
        if kind is not None:
            reason = f"{name}:1: cannot be read: it is {kind}, and only regular files are read"
            raise ScenarioError(name, (reason,))
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = f"{name}:1: cannot be read: {error.strerror or error}"
        raise ScenarioError(name, (reason,)) from error
    if len(raw) > MAX_BYTES:
        raise ScenarioError(name, (f"{name}:1: larger than {MAX_BYTES} bytes",))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ScenarioError(name, (f"{name}:{line}: is not UTF-8 text",)) from error
    return parse_document(text, name)


def parse_document(text: str, name: str) -> Document:
    """Parse ``text``; ``name`` stands for the file in messages. Raises ScenarioError."""
    value, places = parse_value(text, name)
    if value is None:
        raise ScenarioError(name, (f"{name}:1: is empty: must be a mapping of keys to values",))
    if not isinstance(value, dict):
        raise ScenarioError(name, (f"{name}:1: must be a mapping of keys to values",))
    return Document(name, value, places)


def parse_value(text: str, name: str) -> tuple[Plain, dict[KeyPath, str]]:
    """Parse any plain YAML value, with the places of its keys. Raises ScenarioError."""
    try:
        _refuse_indirection(text, name)
        node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        reason = f"{name}:{line}: is not YAML: {error.problem or error.context or 'malformed'}"
        raise ScenarioError(name, (reason,)) from error
    except (YAMLError, ValueError, RecursionError) as error:
        reason = f"{name}:1: is not YAML: {str(error).splitlines()[0][:200]}"
        raise ScenarioError(name, (reason,)) from error
    reader = _Reader(name)
    value = None if node is None else reader.value(node, (), 0)
    if reader.faults:
        raise ScenarioError(name, tuple(reader.faults))
    return value, reader.places


def _other_kind(path: Path) -> str | None:
    """What ``path`` is if not a regular file: reading a pipe or a device may never end."""
    mode = path.stat().st_mode
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "a socket"


def _fault(place: str, path: KeyPath, reason: str) -> str:
    key = ".".join(brief(str(part)) for part in path)
    return f"{place}: {key}: {reason}" if key else f"{place}: {reason}"


def _refuse_indirection(text: str, name: str) -> None:
    """Walk the event stream first: nothing is built before aliases and size are known."""
    nodes = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        if not isinstance(event, NodeEvent):
            continue
        nodes += 1
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent) or event.anchor is not None:
            raise ScenarioError(name, (f"{name}:{line}: anchors and aliases are not allowed",))
        if isinstance(event, TAGGED) and event.tag is not None:
            reason = f"{name}:{line}: the tag {brief(str(event.tag))!r} is not allowed"
            raise ScenarioError(name, (reason,))
        if nodes > MAX_NODES:
            raise ScenarioError(name, (f"{name}:{line}: more than {MAX_NODES} values",))


class _Reader:
    """Turns composed nodes into plain data, collecting places and faults."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.places: dict[KeyPath, str] = {}
        self.faults: list[str] = []

    def value(self, node: Node, path: KeyPath, depth: int) -> Plain:
        self.places.setdefault(path, self._place(node))
        if depth > MAX_DEPTH:
            self._fault(node, path, f"nested deeper than {MAX_DEPTH} levels")
            return None
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            return [
                self.value(item, (*path, index), depth + 1) for index, item in enumerate(node.value)
            ]
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: KeyPath, depth: int) -> Plain:
        built: dict[str, Plain] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, ScalarNode) else None
            if not isinstance(key, str) or key == "<<" or len(key) > 200:
                self._fault(key_node, path, "a key must be plain text")
                continue
            here = (*path, key)
            if key in built:
                self._fault(key_node, here, "key is given twice")
                continue
            self.places[here] = self._place(key_node)
            built[key] = self.value(value_node, here, depth + 1)
        return built

    def _scalar(self, node: Node, path: KeyPath) -> Plain:
        text, tag = str(node.value), str(node.tag)
        try:
            match tag.removeprefix(_CORE):
                case "str":
                    return text
                case "null" if not text:
                    self._fault(node, path, "has no value; write null to leave it out")
                    return None
                case "null":
                    return None
                case "bool":
                    return text.lower() == "true"
                case "int":
                    return int(text.replace("_", "")) if len(text) <= 30 else text
                case "float":
                    return float(text.replace("_", ""))
                case "timestamp":
                    return text
        except ValueError:
            return text
        self._fault(node, path, f"the value {brief(text)!r} is not allowed; put it in quotes")
        return None

    def _place(self, node: Node) -> str:
        return f"{self._name}:{node.start_mark.line + 1}"

    def _fault(self, node: Node, path: KeyPath, reason: str) -> None:
        self.faults.append(_fault(self._place(node), path, reason))
