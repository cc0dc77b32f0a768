"""From pydantic's findings to lines that an author can act on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from testbed.errors import ScenarioError
from testbed.scenario.document import Document, KeyPath, Plain
from testbed.scenario.nearest import brief, unknown_key
from testbed.scenario.pool import DEFAULT, DISCIPLINE, UNKNOWN

TELLING: Mapping[str, str | None] = {"kind": None, DISCIPLINE: DEFAULT}
"""Keys that tell the models of a union apart, and what it means to leave them out."""

ModelT = TypeVar("ModelT", bound=BaseModel)

CORRELATION = (
    "correlated random loss and jitter are broken in the kernel (netem's 'loss 20% 75%' loses "
    "0.1 %); use kind gilbert-elliott or four-state"
)

LIMIT = (
    "is not a setting: a limit below bandwidth x delay caps throughput at limit / delay, so the "
    "testbed sizes it from rate and delay; leave it out and set buffer"
)


def check(document: Document, model: type[ModelT]) -> ModelT:
    """Validate ``document`` as ``model``.

    Raises:
        ScenarioError: with every fault of the document as ``file:line: key: reason``.
    """
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise ScenarioError(document.name, describe(document, model, error)) from error


def describe(document: Document, model: type[BaseModel], error: ValidationError) -> tuple[str, ...]:
    """All faults of ``error`` in the order of the file, each said once."""
    details = error.errors(include_url=False)
    optional = {detail["loc"][:-1] for detail in details if _is_none_branch(detail)}
    return in_order(
        document.fault(written(document.data, detail), _reason(model, detail, optional))
        for detail in details
        if not _is_none_branch(detail)
    )


def _is_none_branch(detail: ErrorDetails) -> bool:
    """Whether this is the other half of a union: "or the word none", said of each fault."""
    return bool(detail["loc"]) and detail["loc"][-1] == "literal['none']"


def in_order(faults: Iterable[str]) -> tuple[str, ...]:
    """Each fault once, sorted by line."""
    return tuple(sorted(dict.fromkeys(faults), key=_line))


def _line(fault: str) -> int:
    """Line number of ``file:line: …``; 0 for what came from the command line."""
    found = re.match(r"[^:]*:([0-9]+): ", fault)
    return int(found[1]) if found else 0


def written(data: Plain, detail: ErrorDetails) -> KeyPath:
    """The key path as the author wrote it: pydantic's, less the tags of unions."""
    path: list[str | int] = []
    current: Plain = data
    parts = detail["loc"]
    for index, part in enumerate(parts):
        if isinstance(current, dict) and part in current:
            current = current[str(part)]
        elif isinstance(current, list) and isinstance(part, int) and part < len(current):
            current = current[part]
        elif not (index == len(parts) - 1 and detail["type"] == "missing"):
            continue
        path.append(part)
    if detail["type"] == UNKNOWN and isinstance(current, dict) and DISCIPLINE in current:
        path.append(DISCIPLINE)
    return tuple(path)


def _reason(
    model: type[BaseModel], detail: ErrorDetails, optional: set[tuple[str | int, ...]]
) -> str:
    """Why, in words; ``optional`` holds the places where the word none may stand."""
    last = str(detail["loc"][-1]) if detail["loc"] else ""
    match detail["type"]:
        case "extra_forbidden":
            if "correlation" in last:
                return CORRELATION
            if last == "limit":
                return LIMIT
            return unknown_key(last, _fields(model, detail["loc"][:-1]))
        case "missing":
            return "is missing"
        case "union_tag_not_found":
            return "needs the key 'kind'"
        case "union_tag_invalid":
            context = detail.get("ctx", {})
            wrong = brief(str(context.get("tag")))
            return f"unknown kind {wrong!r}; known: {context.get('expected_tags')}"
        case "model_type" | "model_attributes_type":
            or_none = ", or none" if detail["loc"][:-1] in optional else ""
            return f"must be a mapping of keys to values{or_none}"
        case "value_error":
            return detail["msg"].removeprefix("Value error, ")
    return detail["msg"]


def _fields(model: type[BaseModel], parts: tuple[str | int, ...]) -> set[str]:
    """Names of the keys that are allowed where ``parts`` points."""
    current = {model}
    for part in parts:
        holders = [known for known in current if part in known.model_fields]
        if holders:
            current = {
                found
                for holder in holders
                for found in _models(holder.model_fields[str(part)].annotation)
            }
            continue
        tagged = {known for known in current if part in _tags(known)}
        current = tagged or current
    return {name for known in current for name in known.model_fields}


def _models(annotation: object) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {found for part in get_args(annotation) for found in _models(part)}


def _tags(model: type[BaseModel]) -> tuple[object, ...]:
    fields = (model.model_fields.get(key) for key in TELLING)
    return tuple(tag for field in fields if field for tag in get_args(field.annotation))
