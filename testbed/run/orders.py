"""Takes the orders that come to a run under way: from inside the lab, between two looks at it."""

from __future__ import annotations

import os
from pathlib import Path

from testbed.contract.fault import ResetFault
from testbed.contract.order import Answer, ByHand, Order, answer_path, order_path
from testbed.contract.record import Record
from testbed.errors import LabError
from testbed.lab.faults import Faults


class Orders:
    """The orders of one run, each taken once. A fault with a duration ends when it is over."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._next = 1
        self._live: dict[str, int | None] = {}
        """Names of the faults in force, and when each ends by itself."""
        self._faults: dict[str, ByHand] = {}

    def take(self, faults: Faults, now_ns: int) -> None:
        """Does what was asked since the last call; ``now_ns`` is emulated, since the barrier.

        Raises:
            FidelityError: a link is not as it was meant to become.
        """
        for name, end_ns in tuple(self._live.items()):
            if end_ns is not None and end_ns <= now_ns:
                del self._live[name]
                faults.end(self._faults[name])
        while (path := order_path(self._run, self._next)).is_file():
            order = Order.model_validate_json(path.read_text(encoding="utf-8"))
            try:
                self._do(order, faults, now_ns)
                answer = Answer(at_ns=now_ns)
            except LabError as error:
                answer = Answer(at_ns=now_ns, refused=error.cause)
            write_whole(answer_path(self._run, self._next), answer)
            self._next += 1

    def _do(self, order: Order, faults: Faults, now_ns: int) -> None:
        name, lasts_ns = order.fault.name, order.lasts_ns
        if order.act == "begin":
            faults.begin(order.fault)
            if isinstance(order.fault, ResetFault):
                return  # it is over as soon as it came
            self._faults[name] = order.fault
            self._live[name] = None if lasts_ns is None else now_ns + lasts_ns
        elif name not in self._live:
            raise LabError("end a fault", name, "it is over already")
        else:
            del self._live[name]
            faults.end(self._faults[name])


def write_whole(path: Path, value: Record) -> None:
    """Writes a value so that whoever looks sees all of it or nothing."""
    draft = path.with_name(f".{path.name}")
    draft.write_text(value.model_dump_json(indent=1), encoding="utf-8")
    os.replace(draft, path)
