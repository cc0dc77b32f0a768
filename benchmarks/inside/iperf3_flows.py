"""Runs in the guest: iperf3 through the built lab, from the prefill to the decode instance."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.errors import LabError
from testbed.lab.ledger import Ledger
from testbed.lab.mininet.lab import MininetLab
from testbed.lab.wires import Wires
from testbed.run.inside import main


def flows(plan: Plan, run: Path, lab: MininetLab, wires: Wires, ledger: Ledger, mark: Mark) -> None:
    """Serves once on md1, sends from p1; leaves iperf3's own JSON."""
    options = json.loads((run / "iperf3.json").read_text(encoding="utf-8"))
    address = next(agent.address for agent in plan.agents if agent.node == "md1")
    paths = lab.paths()
    ledger.acquire("process", "iperf3 server")
    server = subprocess.Popen(
        ["nsenter", f"--net={paths['md1']}", "iperf3", "-s", "-1", "-B", address],
        stdout=subprocess.DEVNULL,
    )
    try:
        client = subprocess.run(
            [
                "nsenter", f"--net={paths['p1']}", "iperf3", "-c", address, "-J",
                "-P", str(options["flows"]), "-t", str(options["seconds"]), "-w", "32M",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        (run / "flows.json").write_text(client.stdout, encoding="utf-8")
        if client.returncode != 0:
            raise LabError("run iperf3", address, client.stdout[-500:] + client.stderr)
        server.wait(timeout=60)
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main("/mnt/run", flows))
