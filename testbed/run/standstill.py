"""Stands still at the breakpoints of a plan, without virtual time and without the run noticing.

Reading the clock takes virtual time. So nobody does between a sample and the next wait: links are
not asked anew, since to tell of a fair queue the kernel reads it, and files are bare system calls
(see ``lab.sockets``). The run's timeline is that of one without breakpoints. Meanwhile the guest's
core is busy: it asks the host again and again.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from testbed.contract.breakpoint import HOLD, Passage, Picture, picture_path
from testbed.contract.plan import Plan
from testbed.lab.protocol import Lab
from testbed.lab.sampler import Sampler
from testbed.lab.sockets import sockets

_ASKED_PER_MARK = 4096
"""Calls after which the progress mark changes, once in some tenths of a second."""


class Standstill:
    """The breakpoints of one run that are still to come."""

    def __init__(self, plan: Plan, run: Path, lab: Lab, sampler: Sampler) -> None:
        self._run = run
        self._lab = lab
        self._sampler = sampler
        self._due = deque(sorted(plan.breakpoints))
        if self._due:
            picture_path(run, 0).parent.mkdir(exist_ok=True)

    def reached(self, at_ns: int, clock_ns: int) -> None:
        """Stands still if a breakpoint is due by ``at_ns``, until the host says to go on.

        Args:
            clock_ns: what the clock showed last; it is not read again.

        Raises:
            LabError: a node is gone.
        """
        if not self._due or at_ns < self._due[0]:
            return
        while self._due and self._due[0] <= at_ns:
            self._due.popleft()
        path = picture_path(self._run, at_ns)
        _write(path, self._picture(at_ns).model_dump_json(indent=1))
        self._hold(path, clock_ns)

    def _picture(self, at_ns: int) -> Picture:
        links = tuple(
            Passage(
                link=link, direction=direction, bytes=one.bytes, packets=one.packets,
                drops=one.drops, lost=one.lost, backlog_bytes=one.backlog_bytes,
                flight_bytes=one.flight_bytes,
            )
            for (link, direction), one in self._sampler.latest.items()
        )  # fmt: skip
        nodes = {node: sockets(path) for node, path in sorted(self._lab.paths().items())}
        return Picture(
            at_ns=at_ns, links=links, sockets={node: each for node, each in nodes.items() if each}
        )

    def _hold(self, picture: Path, clock_ns: int) -> None:
        hold, draft = self._run / HOLD, picture.with_suffix(".hold")
        _write(draft, str(picture.relative_to(self._run)))
        os.replace(draft, hold)  # whole or not there, as the host sees it
        # Kept open by path alone: each call then goes to the host by its name, which is gone once
        # the host removed it, and leaves nothing behind in the guest's memory.
        kept = os.open(hold, os.O_PATH | os.O_CLOEXEC)
        asked = 0
        try:
            while True:
                asked += 1
                os.utime(hold, ns=((1 + asked // _ASKED_PER_MARK) * 10**9, clock_ns))
        except FileNotFoundError:
            return
        finally:
            os.close(kept)


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        left = memoryview(text.encode())
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)
