"""What is asked of a run that is under way on the real clock, and what came of it.

::

    host:  orders/1.json ──▶ guest looks ten times a second, does it, writes orders/1.answer.json
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from testbed.contract.fault import LinkFault, NodeFault, ResetFault, TrafficFault
from testbed.contract.record import Record

FOLDER = "orders"
ByHand = Annotated[LinkFault | NodeFault | ResetFault | TrafficFault, Field(discriminator="target")]
"""What can be ordered: all that the lab applies."""


class Order(Record):
    """One fault that is to begin now, or to end; ``text`` is how it was written.

    Its span says about when it was asked for, by marks of whole seconds, and how long it lasts:
    that is counted from when it began.
    """

    act: Literal["begin", "end"]
    fault: ByHand
    text: str = ""

    @property
    def lasts_ns(self) -> int | None:
        """How long it is in force; None where it stays until it is ended."""
        span = self.fault.spans[0]
        return None if span.end_ns is None else span.end_ns - span.begin_ns


class Answer(Record):
    """When it was done, in emulated time since the barrier, or in words why not."""

    at_ns: int
    refused: str = ""


def order_path(run: Path, number: int) -> Path:
    """Where the order of that number stands; they count from 1."""
    return run / FOLDER / f"{number}.json"


def answer_path(run: Path, number: int) -> Path:
    """Where its answer stands."""
    return run / FOLDER / f"{number}.answer.json"


def answer_to(run: Path, number: int) -> Answer | None:
    """The answer to an order; None while there is none."""
    path = answer_path(run, number)
    if not path.is_file():
        return None
    return Answer.model_validate_json(path.read_text(encoding="utf-8"))


def orders_of(run: Path) -> tuple[Order, ...]:
    """All orders that were given to a run, in their order."""
    found: list[Order] = []
    while (path := order_path(run, len(found) + 1)).is_file():
        found.append(Order.model_validate_json(path.read_text(encoding="utf-8")))
    return tuple(found)
