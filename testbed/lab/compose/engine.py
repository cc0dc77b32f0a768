"""The Engine that images are built on: the host's own, or a private one for the time of a command.

Only what is asked of an Engine stands here; how it is started is ``dockerd.py``'s affair.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound

from testbed.errors import HostError
from testbed.lab.compose.dockerd import FOLDER, can_start, private_dockerd
from testbed.lab.compose.refusal import refusal

OLDEST = (20, 10)
"""Oldest version of the Engine that is accepted."""
_ANSWER_MOST_S = 3600
"""A step of a build may be silent while packages are installed."""
_STEP_LETTERS = 100
_WORK = re.compile(r" : (FROM|COPY|RUN) ")
"""Steps that are told; the others take no time."""
_BUILDER_WORDS = (" --->", "Removing intermediate container")
_FAULTS = (DockerException, requests.RequestException)


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image of an Engine: its id (``sha256:…``), names, and size."""

    id: str
    names: tuple[str, ...]
    size_bytes: int
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """One image to build: what the builder is told."""

    context: Path
    """A tar archive."""
    dockerfile: str
    target: str
    name: str
    arguments: Mapping[str, str]
    labels: Mapping[str, str]
    network: str
    """Network of the steps: ``none`` where everything is in the context, else ``host``."""


class Engine:
    """One Engine that answered. Every failure comes out as a HostError with a remedy."""

    def __init__(self, address: str, client: docker.DockerClient, version: str) -> None:
        self.address = address
        self.version = version
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def image(self, name: str) -> StoredImage | None:
        """The image of this name or id; None where there is none."""
        try:
            found = self._client.images.get(name)
        except ImageNotFound:
            return None
        except _FAULTS as error:
            raise refusal("look for an image", name, str(error)) from error
        return _stored(found.attrs)

    def images(self, label: str) -> tuple[StoredImage, ...]:
        """All named images that carry this label, in the order of their names."""
        try:
            listed = self._client.images.list(filters={"label": label, "dangling": False})
        except _FAULTS as error:
            raise refusal("list images", self.address, str(error)) from error
        return tuple(sorted((_stored(i.attrs) for i in listed), key=lambda i: i.names))

    def pull(self, name: str) -> None:
        """Fetches an image from its registry."""
        repository, _, tag = name.partition(":")
        try:
            self._client.api.pull(repository, tag=tag or "latest")
        except _FAULTS as error:
            raise refusal("pull the base image", name, str(error)) from error

    def import_root(self, archive: Path, repository: str, tag: str, comment: str) -> None:
        """Makes an image out of a tar archive of a root file system."""
        changes = [f'LABEL org.opencontainers.image.title="{comment}"']
        try:
            with archive.open("rb") as stream:
                self._client.api.import_image_from_data(
                    stream, repository=repository, tag=tag, changes=changes
                )
        except _FAULTS as error:
            raise refusal("import the base image", f"{repository}:{tag}", str(error)) from error

    def build(self, order: BuildOrder, say: Callable[[str], None]) -> None:
        """Builds one image with the classic builder, telling each of its steps.

        Raises:
            HostError: a step failed; its last words are quoted.
        """
        said: list[str] = []
        try:
            with order.context.open("rb") as stream:
                for line in self._client.api.build(
                    fileobj=stream, custom_context=True, dockerfile=order.dockerfile,
                    target=order.target, tag=order.name, buildargs=dict(order.arguments),
                    labels=dict(order.labels), network_mode=order.network,
                    rm=True, forcerm=True, decode=True,
                ):  # fmt: skip
                    words = str(line.get("error") or line.get("stream") or "")
                    if "error" in line:
                        said.append(command_status(words))
                        raise refusal("build the image", order.name, "".join(said))
                    if words.startswith("Step "):
                        said.clear()
                        if _WORK.search(words):
                            say(f"{order.target}: {words.strip()[:_STEP_LETTERS]}")
                    elif not words.startswith(_BUILDER_WORDS):
                        said.append(words)
        except _FAULTS as error:
            raise refusal("build the image", order.name, f"{''.join(said)}\n{error}") from error

    def save(self, names: tuple[str, ...], archive: Path) -> None:
        """Writes images into one archive, as ``docker save`` does."""
        api = self._client.api
        try:
            with (
                api.get(
                    f"{api.base_url}/v{api.api_version}/images/get",
                    params={"names": list(names)}, stream=True, timeout=_ANSWER_MOST_S,
                ) as answer,
                archive.open("wb") as stream,
            ):  # fmt: skip
                answer.raise_for_status()
                for part in answer.iter_content(1024 * 1024):
                    stream.write(part)
        except (*_FAULTS, OSError) as error:
            raise refusal("save images", ", ".join(names), str(error)) from error

    def tag(self, name: str, repository: str, tag: str) -> None:
        """Gives an image one more name; whatever bore it before loses it."""
        try:
            self._client.api.tag(name, repository, tag)
        except _FAULTS as error:
            raise refusal("name an image", f"{repository}:{tag}", str(error)) from error

    def remove(self, name: str) -> None:
        """Takes a name away, and the image with it where it has no other."""
        try:
            self._client.images.remove(name)
        except ImageNotFound:
            return
        except _FAULTS as error:
            raise refusal("remove an image", name, str(error)) from error


def _stored(attributes: Mapping[str, object]) -> StoredImage:
    names, config = attributes.get("RepoTags"), attributes.get("Config")
    labels = config.get("Labels") if isinstance(config, dict) else attributes.get("Labels")
    return StoredImage(
        str(attributes["Id"]),
        tuple(sorted(names)) if isinstance(names, list) else (),
        int(str(attributes["Size"])),
        labels if isinstance(labels, dict) else {},
    )


def command_status(words: str) -> str:
    """What the builder says of a failed step, without the step's whole text."""
    return re.sub(r"(?s)^The command '.*' (returned a non-zero code: \d+)$", r"the step \1", words)


def version_of(text: str) -> tuple[int, int]:
    """(major, minor) of an Engine's version, for example of ``20.10.24+dfsg1``."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def refuse_old(version: str) -> None:
    """Raises HostError where the Engine is older than what is supported."""
    if version_of(version) < OLDEST:
        raise HostError(
            "use the Engine", version or "unknown version", "it is older than 20.10",
            "install Docker Engine 20.10 or later (Debian 12: apt-get install docker.io)",
        )  # fmt: skip


def host_address() -> str | None:
    """Address of the host's Engine: DOCKER_HOST, or the first usual socket that is there."""
    named = os.environ.get("DOCKER_HOST", "")
    if named:
        return named
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    usual = (Path("/var/run/docker.sock"), *((Path(runtime) / "docker.sock",) if runtime else ()))
    return next((f"unix://{path}" for path in usual if path.is_socket()), None)


def connect(address: str) -> Engine:
    """Speaks to the Engine at an address.

    Raises:
        HostError: nothing answers there, this user may not, or it is too old.
    """
    if address.startswith("unix://"):
        _refuse_silent(address.removeprefix("unix://"))
    try:
        client = docker.DockerClient(base_url=address, version="auto", timeout=_ANSWER_MOST_S)
        version = str(client.version()["Version"])
    except (*_FAULTS, APIError) as error:
        raise refusal("reach the Engine", address, f"{error}") from error
    refuse_old(version)
    return Engine(address, client, version)


def _refuse_silent(path: str) -> None:
    """Raises HostError where nothing listens (the SDK would leave its socket open then)."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
    except OSError as error:
        raise refusal("reach the Engine", f"unix://{path}", f"Docker daemon: {error}") from error


@contextmanager
def usable_engine(
    cache: Path, say: Callable[[str], None], networks: bool = False
) -> Iterator[Engine]:
    """The host's Engine, or a private one that ends with the block.

    Raises:
        HostError: there is none, and none can be started here.
    """
    address = host_address()
    if address is not None:
        with connect(address) as engine:
            yield engine
        return
    obstacle = can_start()
    if obstacle:
        raise HostError(
            "find an Engine", "DOCKER_HOST, /var/run/docker.sock", obstacle,
            "install Docker Engine and start it (Debian 12: apt-get install docker.io), "
            "or name one in DOCKER_HOST",
        )  # fmt: skip
    say(f"starting a private Engine on {cache / FOLDER}")
    with private_dockerd(cache, say, networks) as private, connect(private) as engine:
        yield engine
