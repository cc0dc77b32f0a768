"""Runs in a room on the host's kernel: builds the plan's network as far as no netem is needed."""

from __future__ import annotations

import json
import os
from pathlib import Path

from testbed.contract.plan import Plan
from testbed.lab.ledger import Ledger
from testbed.lab.mininet.lab import MininetLab

RUN = Path("/mnt/run")


def main() -> None:
    """Writes what is seen inside to ``seen.json``."""
    plan = Plan.model_validate_json((RUN / "plan.json").read_text(encoding="utf-8"))
    ledger = Ledger(RUN / "ledger.jsonl")
    with MininetLab(plan.network, ledger) as lab:
        devices = {
            node.name: len(lab.namespaces[node.name].get_links()) for node in plan.network.nodes
        }
        words = lab.node("p1").cmd("cat /proc/sys/net/ipv4/tcp_congestion_control")
    seen = {
        "devices": devices,
        "congestion": words.strip(),
        "pids": [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()],
        "outside": sorted(os.listdir("/sys/class/net")),
    }
    (RUN / "seen.json").write_text(json.dumps(seen), encoding="utf-8")


if __name__ == "__main__":
    main()
