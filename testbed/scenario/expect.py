"""The ``expect:`` part: what must come out for a run to pass, in units.

A bound is ``"< 5 s"``, ``">= 90 %"`` or ``"== 0"``; its unit must suit the metric.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field
from pydantic.json_schema import JsonSchemaValue

from testbed.contract.record import Record
from testbed.errors import UnitError
from testbed.scenario.checknames import CHECK_NAMES
from testbed.scenario.metricnames import (
    EXAMPLES,
    FAULT_METRIC,
    INSTANCE_METRIC,
    LINK_METRIC,
    counts_bytes,
    is_metric,
)
from testbed.scenario.nearest import listing
from testbed.units import Duration, Frequency, Load, Size, Written

Relation: TypeAlias = Literal["<", "<=", ">", ">=", "=="]

_SHARES = re.compile(r"(utilization|_fraction|[_.]hit|_share|\.gap|offered_load)$")
_BOUND = re.compile(r"(?P<op><=|>=|==|<|>) ?(?P<value>[^<>=]{1,40})")


@dataclass(frozen=True, slots=True)
class Bound(Written):
    """A comparison with a limit as the author wrote it."""

    relation: Relation
    limit: str

    @classmethod
    def parse(cls, text: str) -> Bound:
        """Read ``"< 5 s"``. Raises UnitError."""
        match = _BOUND.fullmatch(text.strip())
        if match is None:
            raise UnitError("read a bound", repr(text)[:60], "is no bound", 'write "< 5 s"')
        relation: Relation
        match match["op"]:
            case "<" | "<=" | ">" | ">=" | "==" as op:
                relation = op
        return cls(relation, match["value"].strip())

    def value(self, metric: str) -> float:
        """The limit in the SI unit of ``metric``.

        Raises:
            UnitError: the unit does not suit the metric.
        """
        if metric.endswith("_s") and not metric.endswith("_per_s"):
            return Duration.parse(self.limit).seconds
        if counts_bytes(metric):
            return float(Size.parse(self.limit).bytes)
        if metric.endswith("_rps"):
            return Frequency.parse(self.limit).per_second
        if _SHARES.search(metric):
            return Load.parse(self.limit).ratio
        if not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", self.limit):
            raise UnitError(
                "read a bound",
                repr(self.limit),
                "is not a plain number",
                "write a number without a unit",
            )
        return float(self.limit)

    def holds(self, metric: str, measured: float) -> bool:
        """Whether ``measured`` (SI) satisfies the bound."""
        limit = self.value(metric)
        match self.relation:
            case "<":
                return measured < limit
            case "<=":
                return measured <= limit
            case ">":
                return measured > limit
            case ">=":
                return measured >= limit
            case "==":
                return measured == limit

    def __str__(self) -> str:
        return f"{self.relation} {self.limit}"

    @classmethod
    def not_text(cls, value: object) -> UnitError:
        """A bound has a relation, so it is text."""
        return UnitError("read a bound", "a bound", 'is text such as "< 5 s"')

    @classmethod
    def json_schema(cls) -> JsonSchemaValue:
        """Pattern of relation and limit."""
        return {"type": "string", "pattern": "^(<=|>=|==|<|>) ?[^<>=]+$", "examples": ["< 5 s"]}


def _known(metric: str) -> str:
    if not is_metric(metric):
        raise ValueError(listing(metric, EXAMPLES))
    return metric


def _known_check(name: str) -> str:
    if name not in CHECK_NAMES:
        raise ValueError(listing(name, CHECK_NAMES))
    return name


Metric = Annotated[str, AfterValidator(_known)]
Violation = Annotated[
    str, AfterValidator(_known_check), Field(json_schema_extra={"enum": list(CHECK_NAMES)})
]


class Expect(Record):
    """What the author expects; a run passes when all of it holds."""

    verdict: Literal["pass", "fail", "invalid"] = "pass"
    violations: tuple[Violation, ...] = ()
    """Names of checks that must find a violation, for scenarios that provoke one."""
    metrics: dict[Metric, Bound] = Field(default_factory=dict)

    @property
    def links(self) -> frozenset[str]:
        """Names of the links that bounds speak of; the plan knows which links there are."""
        named = (metric for metric in self.metrics if LINK_METRIC.fullmatch(metric))
        return frozenset(metric.split(".")[1] for metric in named)

    @property
    def faults(self) -> frozenset[str]:
        """Names of the faults that bounds speak of; the plan knows which there are."""
        named = (metric for metric in self.metrics if FAULT_METRIC.fullmatch(metric))
        return frozenset(metric.split(".")[1] for metric in named)

    @property
    def instances(self) -> frozenset[str]:
        """Names of the instances that bounds speak of; the plan knows which there are."""
        named = (metric for metric in self.metrics if INSTANCE_METRIC.fullmatch(metric))
        return frozenset(metric.split(".")[2] for metric in named)

    @property
    def limits(self) -> tuple[tuple[str, Relation, float], ...]:
        """Each bound as (metric, relation, limit in the metric's SI unit)."""
        return tuple(
            (metric, bound.relation, bound.value(metric)) for metric, bound in self.metrics.items()
        )
