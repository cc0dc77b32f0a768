"""Runs in the guest: two containers, a third that routes and delays, limits, a read-only root.

Writes what it sees to answers.json; every line of it must be the same in a second guest.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import docker
from docker.types import IPAMConfig, IPAMPool

from testbed.lab.compose.guestengine import GuestEngine
from testbed.lab.ledger import Ledger

RUN = Path("/mnt/run")
IMAGE = "small:1"
SUBNETS = {"left": "10.9.1", "right": "10.9.2"}


def networks(client: docker.DockerClient) -> None:
    """Two networks whose gateway is a container, not the bridge."""
    for name, prefix in SUBNETS.items():
        pool = IPAMPool(subnet=f"{prefix}.0/29", gateway=f"{prefix}.1")
        client.networks.create(
            name, driver="bridge", ipam=IPAMConfig(pool_configs=[pool]),
            options={"com.docker.network.bridge.inhibit_ipv4": "true"},
        )  # fmt: skip


def connect(client: docker.DockerClient, container: str, network: str, last: int) -> None:
    client.networks.get(network).connect(container, ipv4_address=f"{SUBNETS[network]}.{last}")


def router(client: docker.DockerClient) -> None:
    """Takes the gateway's address in both networks, and delays both ways by 10 ms."""
    made = client.api.create_container(
        IMAGE, ["sleep", "1000"], name="router",
        host_config=client.api.create_host_config(
            network_mode="none", cap_add=["NET_ADMIN"], sysctls={"net.ipv4.ip_forward": "1"},
        ),
    )  # fmt: skip
    client.networks.get("none").disconnect(made["Id"])
    for network in SUBNETS:
        connect(client, "router", network, 6)
    container = client.containers.get("router")
    container.start()
    for prefix in SUBNETS.values():
        device = next(
            line.split()[0].split("@")[0]
            for line in said(container, "ip", "-br", "-4", "addr").splitlines()
            if f"{prefix}.6/" in line
        )
        said(container, "ip", "addr", "add", f"{prefix}.1/29", "dev", device)
        said(
            container, "tc", "qdisc", "add", "dev", device, "root",
            "netem", "delay", "10ms", "limit", "1000",
        )  # fmt: skip


def agent(client: docker.DockerClient, name: str, network: str) -> None:
    """A container without any capability, with a read-only root and one address."""
    api = client.api
    address = api.create_endpoint_config(ipv4_address=f"{SUBNETS[network]}.2")
    api.create_container(
        IMAGE, ["sleep", "1000"], name=name, user="10001:10001",
        networking_config=api.create_networking_config({network: address}),
        host_config=api.create_host_config(
            network_mode=network, cap_drop=["ALL"], read_only=True,
            sysctls={"net.ipv4.ping_group_range": "0 2147483647"},
        ),
    )  # fmt: skip
    api.start(name)


def said(container: docker.models.containers.Container, *argv: str) -> str:
    status, out = container.exec_run(list(argv))
    text = out.decode()
    if status != 0:
        raise RuntimeError(f"{argv}: {status}: {text}")
    return text


def limited(client: docker.DockerClient) -> tuple[int, int]:
    """Exit status of a program over its memory limit, and how often the kernel says why."""
    made = client.containers.create(
        IMAGE, ["tail", "/dev/zero"], mem_limit="24m", network_mode="none"
    )
    made.start()
    status = made.wait()["StatusCode"]
    log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    return status, log.count("Memory cgroup out of memory: Killed process")


def main() -> None:
    answers: dict[str, object] = {}
    ledger = Ledger(RUN / "ledger.jsonl")
    with GuestEngine(Path("/mnt/engine"), RUN / "logs", ledger) as engine:
        client = engine.client
        answers["ready_ns"] = time.time_ns()
        networks(client)
        router(client)
        agent(client, "one", "left")
        agent(client, "two", "right")
        one = client.containers.get("one")
        answers["routes"] = said(one, "ip", "route")
        said(one, "ping", "-c", "1", "10.9.2.2")  # the neighbours learn each other
        answers["ping"] = said(one, "ping", "-c", "5", "-i", "0.2", "10.9.2.2")
        answers["links"] = said(client.containers.get("router"), "ip", "-o", "link")
        answers["read_only"] = one.exec_run(["mkdir", "/data/new"])[1].decode()
        answers["limited"] = limited(client)
        answers["containers"] = sorted(c.id for c in client.containers.list(all=True))
    ledger.close()
    answers["mounts"] = [line for line in Path("/proc/mounts").read_text().splitlines()
                         if "/run/engine" in line or "/sys/fs/cgroup/" in line]  # fmt: skip
    answers["processes"] = sorted(
        Path(f"/proc/{pid}/comm").read_text().strip()
        for pid in os.listdir("/proc")
        if pid.isdigit() and Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    answers["end_ns"] = time.time_ns()
    (RUN / "answers.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")


main()
