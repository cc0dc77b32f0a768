"""Runs in the guest: the lab program, with a router that flips bits behind TCP's back.

tc's pedit inverts one byte of every packet of some connections as it leaves for the WAN.
Unlike netem's ``corrupt`` it does so before a checksum was ever computed (CHECKSUM_PARTIAL
travels as it is over veth), so the receiver's TCP takes the packet for right.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.lab.ledger import Ledger
from testbed.lab.mininet.lab import MininetLab
from testbed.lab.wires import Wires
from testbed.run.inside import let_agents_work, main


def flip(plan: Plan, run: Path, lab: MininetLab, wires: Wires, ledger: Ledger, mark: Mark) -> None:
    """Puts the filters on the router of the sending site, then lets the agents work."""
    options = json.loads((run / "flips.json").read_text(encoding="utf-8"))
    for link in plan.network.links:
        if link.kind == "wan":
            inside = f"nsenter --net={lab.paths()[link.a.node]} tc"
            device = f"dev {link.a.interface}"
            commands = [f"{inside} qdisc add {device} clsact"]
            commands += [
                f"{inside} filter add {device} egress protocol ip flower ip_proto tcp "
                f"src_port {port} action pedit munge offset {options['offset']} u8 invert"
                for port in options["source_ports"]
            ]
            for command in commands:
                subprocess.run(command.split(), check=True)
    let_agents_work(plan, run, lab, wires, ledger, mark)


if __name__ == "__main__":
    sys.exit(main("/mnt/run", flip))
