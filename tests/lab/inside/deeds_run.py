"""Runs in the guest: the lab program, in which things are done to the lab at exact virtual times.

``deeds.json`` lists them as ``[[nanoseconds after the barrier, name, argument, …], …]``: methods
of the run's ``Faults``, or what somebody from outside might do behind its back (below).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import docker
from pyroute2 import IPRoute

from testbed.contract.link import LinkSpec
from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.lab.compose.guestengine import SOCKET
from testbed.lab.faults import Faults
from testbed.lab.ledger import Ledger
from testbed.lab.namespace import entered
from testbed.lab.protocol import Lab
from testbed.lab.wires import Wires
from testbed.run.deed import Deed
from testbed.run.inside import let_agents_work, main

RUN = Path("/mnt/run")
LAB: list[Lab] = []
"""The lab of the run, once it is built."""


def container(node: str) -> docker.models.containers.Container:
    """A container, as somebody sees it who knows nothing of the lab."""
    client = docker.DockerClient(base_url=f"unix://{SOCKET}", timeout=600)
    return client.containers.get(f"pdd-{node}-1")


def restart_behind(node: str) -> None:
    container(node).restart(timeout=5)


def kill_behind(node: str) -> None:
    container(node).kill()


def exceed_memory(node: str) -> None:
    """A program in a container takes twice the memory that the container may have."""
    one = container(node)
    size = 2 * int(one.attrs["HostConfig"]["Memory"])
    code = f"taken = bytearray({size})\nfor at in range(0, {size}, 4096): taken[at] = 1"
    status, said = one.exec_run(["python3", "-c", code])
    (RUN / "exceeded.json").write_text(json.dumps([status, said.decode()]), encoding="utf-8")


def within(node: str, act: Callable[[IPRoute], None]) -> None:
    """Does something to the network of a node, as root of the machine can."""
    with entered(LAB[0].paths()[node]):
        socket = IPRoute()
    act(socket)
    socket.close()


def remove_qdisc(node: str, device: str) -> None:
    def act(socket: IPRoute) -> None:
        (index,) = socket.link_lookup(ifname=device)
        socket.tc("del", index=index, root=True)

    within(node, act)


def lower(node: str, device: str) -> None:
    def act(socket: IPRoute) -> None:
        (index,) = socket.link_lookup(ifname=device)
        socket.link("set", index=index, state="down")

    within(node, act)


def disconnect_behind(node: str) -> None:
    one = container(node)
    client = docker.DockerClient(base_url=f"unix://{SOCKET}", timeout=600)
    for name in one.attrs["NetworkSettings"]["Networks"]:
        client.networks.get(name).disconnect(one, force=True)


BEHIND = {
    act.__name__: act
    for act in (
        restart_behind, kill_behind, exceed_memory, remove_qdisc, lower, disconnect_behind,
    )
}  # fmt: skip


def reshape(faults: Faults, name: str, delay_ns: int, rate_share: float) -> None:
    """Another delay and rate for both directions of a link."""
    plan = Plan.model_validate_json((RUN / "plan.json").read_text(encoding="utf-8"))
    link = next(link for link in plan.network.links if link.name == name)

    def other(spec: LinkSpec) -> LinkSpec:
        rate = int(spec.rate_bps * rate_share)
        return spec.model_copy(update={"delay_ns": delay_ns, "rate_bps": rate})

    faults.reshape(name, other(link.forward), other(link.backward))


def deed(at_ns: int, name: str, *arguments: object) -> Deed:
    """One line of ``deeds.json``."""

    def do(faults: Faults) -> None:
        if name in BEHIND:
            BEHIND[name](*arguments)
        elif name == "reshape":
            reshape(faults, *arguments)
        else:
            getattr(faults, name)(*arguments)

    return Deed(at_ns, do)


def work(plan: Plan, run: Path, lab: Lab, wires: Wires, ledger: Ledger, mark: Mark) -> None:
    """The agents work, and the deeds are done."""
    LAB.append(lab)
    listed = json.loads((RUN / "deeds.json").read_text(encoding="utf-8"))
    deeds = [deed(*line) for line in listed]
    let_agents_work(plan, run, lab, wires, ledger, mark, deeds=deeds)


if __name__ == "__main__":
    sys.exit(main(str(RUN), work))
