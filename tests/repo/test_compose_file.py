"""The Compose files at the top: as rendered, as Compose takes them, rights of nobody too many."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from testbed.errors import HostError
from testbed.lab.compose.plugin import find_plugin
from testbed.run.up.file import FILE, GPU_FILE, PROFILES, compose_text, gpu_text
from tests.repo.checkout import ROOT

KNOWN = {
    "": {"name", "services", "networks"},
    "service": {
        "image", "build", "pull_policy", "profiles", "command", "user", "cap_drop", "cap_add",
        "security_opt", "read_only", "tmpfs", "environment", "sysctls", "networks", "network_mode",
        "volumes", "mem_limit", "pids_limit", "stop_grace_period", "depends_on", "healthcheck",
        "labels", "deploy",
    },
    "build": {"context", "dockerfile", "target", "args"},
    "need": {"condition", "required"},
    "health": {"test", "interval", "timeout", "start_period", "retries"},
    "network": {"driver", "driver_opts", "ipam"},
}  # fmt: skip
"""Keys that Compose 2.20 knows (`required` came with 2.20.0); newer ones do not belong here."""


def read(name: str) -> dict[str, Any]:
    loaded = YAML(typ="safe", pure=True).load(io.StringIO((ROOT / name).read_text("utf-8")))
    assert isinstance(loaded, dict)
    return loaded


def services() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from read(FILE)["services"].items()


def test_the_file_at_the_top_is_what_the_command_renders() -> None:
    assert (ROOT / FILE).read_text("utf-8") == compose_text()
    assert (ROOT / GPU_FILE).read_text("utf-8") == gpu_text()


def test_the_first_profile_is_chosen_where_nobody_chooses() -> None:
    assert f"COMPOSE_PROFILES={PROFILES[0][0]}\n" in (ROOT / ".env").read_text("utf-8")
    assert {p for _, one in services() for p in one["profiles"]} == {p for p, _ in PROFILES}


@pytest.mark.parametrize("files", [(FILE,), (FILE, GPU_FILE)], ids=" + ".join)
@pytest.mark.parametrize("profile", [profile for profile, _ in PROFILES])
def test_compose_accepts_it(files: tuple[str, ...], profile: str, tmp_path: Path) -> None:
    try:
        plugin = find_plugin()
    except HostError as error:
        pytest.skip(str(error))
    words = [word for name in files for word in ("-f", name)]
    done = subprocess.run(
        [plugin.program, *words, "--profile", profile, "config", "-q"], cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_no_key_is_newer_than_compose_2_20() -> None:
    whole = read(FILE)
    assert {key for key in whole if not key.startswith("x-")} == KNOWN[""]
    for _, one in services():
        assert one.keys() <= KNOWN["service"]
        assert one.get("build", {}).keys() <= KNOWN["build"]
        assert one["healthcheck"].keys() <= KNOWN["health"]
        assert all(need.keys() <= KNOWN["need"] for need in one.get("depends_on", {}).values())
    assert all(one.keys() <= KNOWN["network"] for one in whole["networks"].values())


def test_only_wires_and_routers_are_root_or_have_a_capability() -> None:
    rooted = set()
    for name, one in services():
        assert one["cap_drop"] == ["ALL"]
        assert one["read_only"] is True
        assert one["security_opt"] == ["no-new-privileges:true"]
        assert one["mem_limit"] > 0
        assert one["pids_limit"] > 0
        if one["user"] == "0:0":
            rooted.add(name)
            assert one["cap_add"] == ["NET_ADMIN", "NET_RAW"]
            assert "router" in one["image"]
        else:
            assert "cap_add" not in one
            assert one["user"] == "${TESTBED_USER:-10001:10001}"
            assert "agent" in one["image"]
    assert {"tor-a", "fab-a", "wan1"} <= rooted
    assert not {"client", "planner", "p1", "md1", "r1", "rt1"} & rooted


def test_runs_is_all_that_is_mounted() -> None:
    for _, one in services():
        assert one["volumes"] == ["./runs:/mnt/runs"]
    assert "docker.sock" not in (ROOT / FILE).read_text("utf-8")


def test_an_agent_has_one_network_and_every_network_two_ends() -> None:
    ends: dict[tuple[str, str], set[str]] = {}
    for name, one in services():
        if one["user"] != "0:0":
            assert len(one.get("networks", {})) == (0 if name.endswith("planner") else 1)
        for network in one.get("networks", {}):
            for profile in one["profiles"]:
                ends.setdefault((profile, network), set()).add(name)
    assert {len(found) for found in ends.values()} == {2}
    assert {network for _, network in ends} == set(read(FILE)["networks"])


def test_networks_leave_the_host_alone() -> None:
    for one in read(FILE)["networks"].values():
        assert one["driver_opts"]["com.docker.network.bridge.inhibit_ipv4"] == "true"
        assert all(
            pool["subnet"].startswith("${TESTBED_NET:-10}.") for pool in one["ipam"]["config"]
        )


def test_every_service_with_a_model_has_a_gpu_and_no_other() -> None:
    reserved = {name for name, one in read(GPU_FILE)["services"].items() if "deploy" in one}
    assert reserved
    assert all(name.rpartition("-")[2][0] in "pmr" for name in reserved)
    assert not {name for name in reserved if "rt" in name or "client" in name}
