"""Runs in the guest: what each agent adds to what it shares with the zygote."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.lab.crew import Crew
from testbed.lab.ledger import Ledger
from testbed.lab.mininet.lab import MininetLab
from testbed.lab.wires import Wires
from testbed.run.inside import main


def available_bytes() -> int:
    """Memory of the guest that is still free for programs."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.M)
    return int(found[1]) * 1024 if found else 0


def private_bytes(pid: int) -> int:
    """Pages that only this process maps."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return sum(int(kb) * 1024 for kb in re.findall(r"^Private_\w+:\s+(\d+) kB$", text, re.M))


def agents() -> dict[str, int]:
    """Process id by agent: the zygote names each child after its node."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            name = (entry / "comm").read_text(encoding="ascii").strip()
            found[name] = int(entry.name)
    return found


def weigh(plan: Plan, run: Path, lab: MininetLab, wires: Wires, ledger: Ledger, mark: Mark) -> None:
    """Weighs every agent at the barrier and after it served all requests."""
    before = available_bytes()
    nodes = {agent.node: agent.role.value for agent in plan.agents}
    with Crew(plan, run, lab.paths(), ledger) as crew:
        crew.wait_ready(mark)
        waiting = before - available_bytes()
        clients = {node for node, role in nodes.items() if role == "client"}
        at_barrier = {n: private_bytes(p) for n, p in agents().items() if n in nodes}
        while not crew.clients_ended():
            crew.watch(until_ns=time.time_ns() + 100_000_000)
        serving = before - available_bytes()
        after = {n: private_bytes(p) for n, p in agents().items() if n in nodes.keys() - clients}
        crew.stop()
    found = {
        "roles": nodes, "all_waiting": waiting, "all_serving": serving,
        "at_barrier": at_barrier, "after": after,
    }  # fmt: skip
    (run / "memory.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main("/mnt/run", weigh))
