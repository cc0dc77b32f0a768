"""Builds a plan's network of containers: Compose makes them, wires and routers set themselves up.

What they did is then checked from outside like Mininet's: read back, measured, counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import docker

from testbed.compose import Placement, compose_yaml, render_compose
from testbed.contract.meeting import Meeting, Said, drain
from testbed.contract.plan import Plan
from testbed.contract.progress import FOLDER
from testbed.contract.role import NodeKind
from testbed.contract.segment import seats_of
from testbed.errors import LabError
from testbed.lab.built import Built
from testbed.lab.compose.faults import ContainerFaults
from testbed.lab.compose.lives import FAULTS, Lives
from testbed.lab.ledger import Ledger
from testbed.lab.namespace import Namespaces
from testbed.lab.program import Ended, run_program

_UP_S = 600.0
_BUILT_S = 120


@dataclass(frozen=True, slots=True)
class Compose:
    """How Compose is called: its program, and the environment that names the Engine."""

    program: str
    environment: Mapping[str, str]
    first: Callable[[], None] = lambda: None
    """Called in the new process before the program."""

    def call(self, file: Path, *words: str) -> Ended:
        """One call, to its end; TimeoutError after ten minutes."""
        return run_program(
            self.program, "--file", str(file), *words,
            timeout_s=_UP_S, environment=self.environment, first=self.first,
        )  # fmt: skip


class ComposeLab(Built):
    """A built network of containers. Use as a context manager: leaving it removes them all."""

    def __init__(
        self,
        plan: Plan,
        run: Path,
        placement: Placement,
        client: docker.DockerClient,
        compose: Compose,
        ledger: Ledger,
    ) -> None:
        super().__init__(ledger)
        self._plan = plan
        self.network = plan.network
        self._run = run
        self._placement = placement
        self._client = client
        self._file = run / "compose.yaml"
        self._compose = compose
        self._paths: dict[str, str] = {}
        self._lives = Lives(client, placement.project)
        self._built: dict[str, int] = {}
        """The file by which each wire and router said last that it has set itself up."""

    def paths(self) -> Mapping[str, str]:
        """Network namespace of every container, as a path."""
        return self._paths

    def fallen(self) -> Mapping[str, str]:
        """See ``Lab``."""
        return self._lives.fallen()

    def risen(self, node: str) -> bool:
        """See ``Lab``. A wire or router says anew that it is built when it is."""
        said = Meeting(self._run).number(Said.BUILT, node)
        if said == self._built.get(node):
            return False
        path = self._lives.risen(node)
        if path is None:
            return False
        self._paths[node] = path
        if said is not None:
            self._built[node] = said
        return True

    def returning(self, node: str) -> bool:
        """See ``Lab``."""
        return self._lives.runs_anew(node)

    def node_faults(self) -> ContainerFaults:
        """See ``Lab``."""
        return ContainerFaults(
            self.network, self._lives, self._client, self._placement.project, self._name_devices_of
        )

    def memory_kills(self, node: str) -> str:
        """In words, where the kernel killed a program of a node for its memory; else empty."""
        return self._lives.memory_kills(node)

    def _build(self) -> None:
        self._open_folders()
        heading = f"{self._plan.scenario}, seed {self._plan.seed}: rendered from plan.json"
        text = compose_yaml(render_compose(self._plan, self._placement), heading)
        self._file.write_text(text, encoding="utf-8")
        self.ledger.acquire("compose project", self._placement.project, self._down)
        self._call("up", "--detach", "--no-build", "--pull", "never", "--quiet-pull")
        self.ledger.acquire("descriptors", "of all containers", self._lives.close)
        self._paths.update(self._lives.begin())
        self._wait_built()
        self._name_devices()

    def _open_folders(self) -> None:
        """What agents write into; their own files where the run folder is root's."""
        Meeting(self._run).open()
        for name in ("events", "logs", FOLDER):
            (self._run / name).mkdir(parents=True, exist_ok=True)
            (self._run / name).chmod(0o777)
        owner = self._run.stat().st_uid
        for agent in self._plan.agents:
            mark = self._run / FOLDER / agent.node
            mark.touch()
            if owner != self._placement.user:
                os.chown(mark, self._placement.user, self._placement.group)
        folder = self._run / "agents"
        folder.mkdir(exist_ok=True)
        for agent in self._plan.agents:
            path = folder / f"{agent.node}.json"
            path.write_text(agent.model_dump_json(indent=1), encoding="utf-8")

    def _wait_built(self) -> None:
        meeting = Meeting(self._run)
        wanted = {n.name for n in self._plan.network.nodes if n.kind is not NodeKind.AGENT}
        until = time.time_ns() + _BUILT_S * 10**9
        with meeting.news(Said.BUILT) as news:
            while missing := wanted - meeting.names(Said.BUILT):
                for name in sorted(missing & meeting.names(Said.ENDED)):
                    raise LabError(
                        "set up a container", name, meeting.heard(Said.ENDED, name) or "it ended",
                        f"see logs/{name}.container.log",
                    )  # fmt: skip
                left = (until - time.time_ns()) / 1e9
                if left <= 0:
                    raise LabError("set up the containers", ", ".join(sorted(missing)), "too slow")
                drain(news, min(left, 1.0))
        self._built = {node: number for node in wanted
                       if (number := meeting.number(Said.BUILT, node)) is not None}  # fmt: skip

    def _name_devices(self) -> None:
        for node in self._plan.network.nodes:
            if node.kind is NodeKind.AGENT:
                self._name_devices_of(node.name)

    def _name_devices_of(self, node: str) -> None:
        """An agent's devices bear Docker's names; the plan's become further names of them."""
        namespaces = Namespaces({node: self._paths[node]})
        try:
            socket = namespaces[node]
            found = {
                str(entry.get_attr("IFA_ADDRESS")): int(entry["index"])
                for entry in socket.get_addr(family=2)
            }
            for seat in seats_of(self._plan.network, node):
                socket.link("property_add", index=found[seat.address], altname=seat.device)
        finally:
            namespaces.close()

    def _down(self) -> None:
        """Keeps what containers said outside of their logs, and removes them all."""
        try:
            for name, container in self._lives.containers().items():
                said = container.logs()
                if said:
                    (self._run / "logs" / f"{name}.container.log").write_bytes(said)
        except FAULTS as error:
            raise LabError("keep the containers' logs", self._run.name, str(error)) from error
        finally:
            self._call("down", "--timeout", "5", "--volumes")

    def _call(self, *words: str) -> None:
        done = self._compose.call(self._file, *words)
        if done.status != 0:
            raise LabError(
                f"call docker compose {words[0]}", self._placement.project,
                done.err.strip()[-2000:] or f"exit status {done.status}", "see logs/dockerd.log",
            )  # fmt: skip
