"""A container Engine inside the guest, on a disk whose images are ready (guest side).

::

    /sys/fs/cgroup/<controller>     cgroup v1, each mounted
    /run/engine/data                the disk, through the loop device
    /run/engine/exec, sock, pid     on a memory file system

The Engine is the host's own dockerd. It shares nothing with an Engine of the host: neither
configuration nor socket nor folder. It sets up no packet filter and no bridge of its own.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import docker
from docker.errors import APIError

from testbed.contract.progress import FOLDER, Mark
from testbed.errors import LabError
from testbed.lab.built import Built
from testbed.lab.compose.guestimage import DISK, PROGRAMS
from testbed.lab.compose.loopdevice import mount, mount_disk
from testbed.lab.ledger import Ledger
from testbed.lab.program import end_process

CONTROLLERS = ("cpu,cpuacct", "devices", "freezer", "pids", "blkio", "memory")
ROOT = Path("/run/engine")
SOCKET = ROOT / "sock"
_CONFIG = ROOT / "daemon.json"
_ETC = Path("/etc/docker")
_PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_READY_S, _END_S = 60.0, 20.0
_TRANSLATED = Path("/proc/sys/net/bridge")


class GuestEngine(Built):
    """A running Engine. Use as a context manager: leaving it ends every container and the Engine.

    Attributes:
        client: speaks to the Engine.
    """

    def __init__(
        self, folder: Path, logs: Path, ledger: Ledger, settings: Mapping[str, str] | None = None
    ) -> None:
        """As ``Built``.

        Args:
            folder: with the disk, which is changed, and the Engine's programs.
            logs: the folder ``logs`` of the run, for dockerd.log and progress marks.
            settings: more of dockerd's environment.
        """
        super().__init__(ledger)
        self._folder = folder
        self._log = logs / "dockerd.log"
        self._settings = dict(settings or {})
        self._daemon: subprocess.Popen[bytes] | None = None
        self.client: docker.DockerClient

    def _build(self) -> None:
        self._silence()
        for name in CONTROLLERS:
            target = Path("/sys/fs/cgroup") / name
            if not target.is_mount():
                mount(self.ledger, target, "-t", "cgroup", "-o", name, name)
        mount_disk(self.ledger, self._folder / DISK, ROOT / "data")
        self._keep_key()
        environment = {
            "PATH": f"{self._folder / PROGRAMS}:{_PLACES}",
            "HOME": "/run/engine", "LANG": "C.UTF-8", **self._settings,
        }  # fmt: skip
        with _Readiness(ROOT / "notify") as readiness, self._log.open("ab") as log:
            environment["NOTIFY_SOCKET"] = str(ROOT / "notify")
            self.ledger.acquire("process", "dockerd", self._end)
            self._daemon = subprocess.Popen(
                daemon_argv(), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
            readiness.wait(self._daemon, self._log)
        for name in ("iptables", "ip6tables", "arptables"):
            file = _TRANSLATED / f"bridge-nf-call-{name}"
            if file.exists():
                file.write_text("0", encoding="ascii")
        self.client = docker.DockerClient(base_url=f"unix://{SOCKET}", timeout=600)
        self.ledger.acquire("containers", "all of the guest's Engine", self._end_containers)

    def _silence(self) -> None:
        """No IPv6 on bridges and the host's ends of veth pairs: each would solicit routers after a
        random delay, over the links of the run, and in another order each time."""
        for name in ("all", "default"):
            path = Path("/proc/sys/net/ipv6/conf") / name / "disable_ipv6"
            if path.exists():
                path.write_text("1", encoding="ascii")

    def _keep_key(self) -> None:
        """Older Engines write a key below /etc, which is read-only here: give it another place."""
        if _ETC.is_dir():
            mount(self.ledger, _ETC, "-t", "tmpfs", "docker")
            content = {}
        else:
            content = {"deprecated-key-path": str(ROOT / "key.json")}
        _CONFIG.write_text(json.dumps(content), encoding="utf-8")

    def _end_containers(self) -> None:
        mark = Mark(self._log.parents[1] / FOLDER, "engine")
        try:
            for container in self.client.containers.list():
                mark.touch(time.time_ns())
                try:
                    container.stop(timeout=5)
                except APIError as error:
                    if error.response is None or error.response.status_code not in (304, 404, 409):
                        raise
        finally:
            self.client.close()

    def _end(self) -> None:
        if self._daemon is not None:
            end_process(self._daemon, _END_S)


def daemon_argv() -> list[str]:
    """How dockerd is called: all that it would read or write elsewhere is given."""
    return [
        "dockerd", "--config-file", str(_CONFIG),
        "--data-root", str(ROOT / "data"), "--exec-root", str(ROOT / "exec"),
        "--pidfile", str(ROOT / "pid"), "--host", f"unix://{SOCKET}",
        "--storage-driver", "overlay2", "--bridge", "none", "--iptables=false",
        "--ip-forward=false", "--shutdown-timeout", "5",
        "--raw-logs",
    ]  # fmt: skip


class _Readiness:
    """Hears from the Engine that it answers (sd_notify(3)), so that nobody has to ask again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def __enter__(self) -> Self:
        self._path.unlink(missing_ok=True)
        self._socket.bind(str(self._path))
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def wait(self, daemon: subprocess.Popen[bytes], log: Path) -> None:
        """Returns when it is ready.

        Raises:
            LabError: it ended, or was not ready in time.
        """
        deadline = time.monotonic() + _READY_S
        watched = os.pidfd_open(daemon.pid)
        try:
            while (left := deadline - time.monotonic()) > 0:
                ready, _, _ = select.select([self._socket.fileno(), watched], [], [], left)
                if self._socket.fileno() in ready and b"READY=1" in self._socket.recv(4096):
                    return
                if watched in ready:
                    break
        finally:
            os.close(watched)
        text = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        status = daemon.poll()
        how = f"was not ready after {_READY_S} s" if status is None else f"ended with {status}"
        raise LabError(
            "start the Engine in the guest", "dockerd", f"it {how}; its last words:\n"
            + "\n".join(text[-6:]),
            "see logs/dockerd.log",
        )  # fmt: skip
