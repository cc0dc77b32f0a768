"""Runs in the guest: the first packet through a built lab, from the first P to the last MD."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.contract.role import Role
from testbed.errors import LabError
from testbed.lab.ledger import Ledger
from testbed.lab.mininet.lab import MininetLab
from testbed.lab.wires import Wires
from testbed.run.inside import main


def first_packet(
    plan: Plan, run: Path, lab: MininetLab, wires: Wires, ledger: Ledger, mark: Mark
) -> None:
    """Leaves ``built`` when the network stands and ``answered`` when a packet came back.

    The kernel reports carriers at most once a second (net/core/link_watch.c) and drops
    until then, so ping repeats; that is virtual time, long before any barrier.
    """
    (run / "built").touch()
    source = next(agent.node for agent in plan.agents if agent.role is Role.PREFILL)
    target = [agent.address for agent in plan.agents if agent.role is Role.DECODE][-1]
    inside = f"nsenter --net={lab.paths()[source]}"
    ping = f"ping -n -c 1 -i 0.1 -w 10 {target}"
    done = subprocess.run(
        [*inside.split(), *ping.split()], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LabError("send the first packet", target, done.stdout + done.stderr)
    (run / "answered").touch()


if __name__ == "__main__":
    sys.exit(main("/mnt/run", first_packet))
