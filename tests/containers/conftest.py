"""What container tests share: an Engine, the images of this tree, and one way to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import docker
import pytest

from testbed.lab.compose.dockerd import can_start
from testbed.lab.compose.engine import Engine, host_address, usable_engine
from testbed.lab.compose.images import Image, Target, build_images
from testbed.lab.guest.kernel.cache import cache_root


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program in a container ended and all that it said."""

    status: int
    out: str


Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The host's Engine, or a private one."""
    obstacle = "" if host_address() is not None else can_start()
    if obstacle:
        pytest.skip(obstacle)
    with usable_engine(cache_root(), print) as usable:
        yield usable


@pytest.fixture(scope="session")
def images(engine: Engine) -> dict[Target, Image]:
    """Both images, built if they are not there."""
    return {image.target: image for image in build_images(engine, cache_root(), print)}


@pytest.fixture
def run(engine: Engine, images: dict[Target, Image]) -> Iterator[Run]:
    """Runs a program in an image the way agents run: no capability, nothing writable but /tmp."""
    client = docker.DockerClient(base_url=engine.address)

    def call(target: Target, *argv: str) -> Ran:
        container = client.containers.create(
            images[target].id, list(argv), network_mode="none", read_only=True,
            tmpfs={"/tmp": ""}, cap_drop=["ALL"], security_opt=["no-new-privileges"],
        )  # fmt: skip
        try:
            container.start()
            status = int(container.wait()["StatusCode"])
            return Ran(status, container.logs().decode())
        finally:
            container.remove(force=True)

    yield call
    client.close()
