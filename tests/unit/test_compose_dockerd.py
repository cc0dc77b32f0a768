"""A private Engine's command line, who may start one, and what is left of one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.errors import HostError
from testbed.lab.compose.dockerd import dockerd_argv, end_left_dockerd
from testbed.lab.compose.engine import connect, host_address, usable_engine
from testbed.lab.compose.plugin import compose_environment, find_plugin, version_of

pytestmark = pytest.mark.unit


def test_a_private_engine_shares_nothing_with_the_hosts(tmp_path: Path) -> None:
    argv = dockerd_argv(Path("/run/x"), tmp_path, networks=False)
    for option in ("--config-file", "--data-root", "--exec-root", "--pidfile", "-H"):
        value = argv[argv.index(option) + 1].removeprefix("unix://")
        assert value.startswith(("/run/x/", str(tmp_path)))
    assert {"--bridge=none", "--iptables=false", "--ip-forward=false"} <= set(argv)
    assert "--iptables=false" not in dockerd_argv(Path("/run/x"), tmp_path, networks=True)


@pytest.mark.parametrize(
    "pid", ["", "nonsense", "4194303", str(os.getpid())], ids=["empty", "text", "free", "ours"]
)
def test_a_process_that_is_not_the_left_engine_is_left_alone(tmp_path: Path, pid: str) -> None:
    (tmp_path / "pid").write_text(pid)
    assert end_left_dockerd(tmp_path) == "already gone"


def test_a_named_engine_that_does_not_answer_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'none.sock'}")
    assert host_address() == f"unix://{tmp_path / 'none.sock'}"
    with (
        pytest.raises(HostError, match="no Engine answers"),
        usable_engine(tmp_path, print),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(HostError, match="cannot reach the Engine: nonsense://x"):
        connect("nonsense://x")


def plugin(folder: Path, says: str, status: int = 0) -> Path:
    path = folder / "docker-compose"
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("says", ["2.20.0", "v2.39.1", "5.6.1"])
def test_a_compose_plugin_is_found_with_its_version(tmp_path: Path, says: str) -> None:
    path = plugin(tmp_path, says)
    found = find_plugin((tmp_path / "missing", path))
    assert (found.program, found.version) == (path, says)


@pytest.mark.parametrize(("says", "status"), [("1.29.2", 0), ("2.19.1", 0), ("no", 0), ("5.6", 1)])
def test_an_old_or_broken_compose_is_refused(tmp_path: Path, says: str, status: int) -> None:
    with pytest.raises(HostError, match=r"version 2\.20 or later is needed"):
        find_plugin((plugin(tmp_path, says, status),))


def test_a_missing_compose_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"requirements-containers\.lock"):
        find_plugin((tmp_path / "missing",))


def test_compose_never_sees_the_users_own_configuration(tmp_path: Path) -> None:
    environment = compose_environment(tmp_path, "unix:///x")
    assert environment["DOCKER_CONFIG"] == str(tmp_path / "compose")
    assert Path(environment["HOME"]).is_relative_to(tmp_path)
    assert environment["DOCKER_HOST"] == "unix:///x"
    assert version_of("v5.6.1\n") == (5, 6)
