"""Writes once what many services or networks have in common: YAML anchors and merge keys.

::

    x-agent: &agent {cap_drop: [ALL], …}
    services:
      p1: {<<: *agent, command: […], …}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.mergevalue import MergeValue

_INLINE = frozenset(
    {"command", "profiles", "cap_drop", "cap_add", "security_opt", "tmpfs", "networks", "test",
     "depends_on", "config", "volumes", "build", "args", "healthcheck", "labels"}
)  # fmt: skip
"""Keys whose values are written on one line where they are short."""
_SHORT = 96
_INTERNED = frozenset({"sysctls", "build", "driver_opts"})


def common(entries: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """The items that all of these entries have, in the order of the first one."""
    first, *others = entries
    return {
        key: item
        for key, item in first.items()
        if all(key in other and other[key] == item for other in others)
    }


def with_anchors(
    value: Mapping[str, object], shared: Mapping[str, Mapping[str, object]]
) -> CommentedMap:
    """The same content, in which entries that hold all of a shared block refer to it.

    Args:
        shared: blocks by name; the first one that an entry holds is taken.
    """
    found = CommentedMap({"name": value["name"]})
    blocks: dict[str, CommentedMap] = {}
    for name, block in shared.items():
        blocks[name] = _mapping(block)
        blocks[name].yaml_set_anchor(name, always_dump=True)
        found[f"x-{name}"] = blocks[name]
    for section in ("services", "networks"):
        entries = value.get(section)
        if not isinstance(entries, Mapping):
            continue
        found[section] = CommentedMap()
        for name, entry in entries.items():
            found[section][name] = _entry(entry, shared, blocks)
    _intern(found)
    return found


def _intern(found: CommentedMap) -> None:
    """Large values that several entries have are written at the first of them."""
    known: dict[str, CommentedMap] = {}
    for section in ("services", "networks"):
        for name, entry in found.get(section, {}).items():
            for key in _INTERNED & set(dict(entry.non_merged_items())):
                words = repr(entry[key])
                if words in known:
                    entry[key] = known[words]
                else:
                    known[words] = entry[key]
                    entry[key].yaml_set_anchor(f"{name}-{key.replace('_', '-')}")


def _entry(
    entry: Mapping[str, object],
    shared: Mapping[str, Mapping[str, object]],
    blocks: Mapping[str, CommentedMap],
) -> CommentedMap:
    for name, block in shared.items():
        if all(entry.get(key) == item for key, item in block.items()):
            own = _mapping({key: item for key, item in entry.items() if key not in block})
            _merge(own, blocks[name])
            return own
    return _mapping(entry)


def _merge(entry: CommentedMap, block: CommentedMap) -> None:
    """Puts ``<<: *block`` first."""
    merge = MergeValue()
    merge.append(block)
    merge.merge_pos = 0
    entry.add_yaml_merge(merge)


def _mapping(value: Mapping[str, object]) -> CommentedMap:
    found = CommentedMap()
    for key, item in value.items():
        found[key] = _node(key, item)
    return found


def _node(key: str, item: object) -> object:
    """Collections in ruamel's own types; short ones that read well so are put on one line."""
    made: object = item
    if isinstance(item, Mapping):
        made = _mapping(item)
    elif isinstance(item, list):
        made = CommentedSeq(_node("", one) for one in item)
    short = key in _INLINE and len(str(item)) <= _SHORT
    if short and isinstance(made, CommentedMap | CommentedSeq):
        made.fa.set_flow_style()
    return made
