"""Runs in the guest: only sender and receiver of KV, in the nodes p1 and md1 of a built lab."""

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


def transfer(
    plan: Plan, run: Path, lab: MininetLab, wires: Wires, ledger: Ledger, mark: Mark
) -> None:
    """Sends as many transfers as ``transport.json`` says; leaves ``sent.json``."""
    options = json.loads((run / "transport.json").read_text(encoding="utf-8"))
    address = {agent.node: agent.address for agent in plan.agents}
    counted = ["--count", str(options["count"]), "--token-bytes", str(options["token_bytes"])]
    counted += ["--verify", options["verify"], "--low-water", str(options["low_water"])]

    def program(node: str, role: str, *more: str) -> list[str]:
        return [
            "nsenter", f"--net={lab.paths()[node]}", sys.executable, "-B",
            str(run / "transport_load.py"), role, "--address", address[node], *counted, *more,
        ]  # fmt: skip

    ledger.acquire("process", "receiver")
    receiver = subprocess.Popen(program("md1", "receive"))
    try:
        sender = subprocess.run(
            program("p1", "send", "--peer", address["md1"]),
            stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        (run / "sent.json").write_text(sender.stdout, encoding="utf-8")
        if sender.returncode != 0 or receiver.wait(timeout=120) != 0:
            raise LabError("run the transport", "p1 to md1", "see logs/guest.log")
    finally:
        receiver.kill()
        receiver.wait()


if __name__ == "__main__":
    sys.exit(main("/mnt/run", transfer))
