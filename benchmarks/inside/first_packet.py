"""Runs in the guest: the first packet through a built lab, from the first P to the last MD."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.contract.role import Role
from testbed.errors import LabError
from testbed.run.inside import main
from testbed.lab.ledger import Ledger
from testbed.lab.mininet.lab import MininetLab
from testbed.lab.wires import Wires


def ping(plan: Plan, run: Path, lab: MininetLab, wires: Wires, ledger: Ledger, mark: Mark) -> None:
    """Leaves ``built`` when the network stands and ``answered`` when a packet came back.

    The kernel reports carriers at most once a second (net/core/link_watch.c) and drops
    until then, so ping repeats; that is virtual time, long before any barrier.
    """
    (run / "built").touch()
    source = next(agent.node for agent in plan.agents if agent.role is Role.PREFILL)
    target = [agent.address for agent in plan.agents if agent.role is Role.DECODE][-1]
    done = subprocess.run(
        ["nsenter", f"--net={lab.paths()[source]}", "ping", "-n", "-c", "1", "-i", "0.1", "-w", "10", target],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise LabError("send the first packet", target, done.stdout + done.stderr)
    (run / "answered").touch()


if __name__ == "__main__":
    sys.exit(main("/mnt/run", ping))
