"""The two images of this tree: how they are named, built and listed.

A name says what is inside: ``pdd-testbed/agent:<16 hex digits>`` is a digest over base image, pins,
packages, code, and arguments of the build. What bears the name already needs no build.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from testbed.errors import HostError
from testbed.lab.compose.context import (
    DOCKERFILE,
    REQUIREMENTS,
    WHEELS,
    ContextFile,
    checkout_file,
    code_files,
    digest_of,
    recipe_files,
    write_context,
)
from testbed.lab.compose.engine import BuildOrder, Engine, StoredImage
from testbed.lab.compose.rootimage import RootImage, root_image
from testbed.lab.compose.wheels import Torch, Wheels, collected_wheels
from testbed.lab.guest.boot import guest_environment
from testbed.lab.hostledger import HostLedger

LABEL = "org.pdd-testbed.target"
"""Label of every image that was built here; its value is the target."""
CODE_LABEL = "org.pdd-testbed.code"
"""Label with the digest of the code inside."""
_LEAST_FREE_BYTES = 6 * 1024**3
"""Both images, the layers they are built in, and the packages: 4.5 GiB were seen."""
_ROOM = "free some space, or set XDG_CACHE_HOME to a folder on a larger disk"
_CAPABILITY = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")


class Target(StrEnum):
    """A final stage of agents/Dockerfile."""

    ROUTER = "router"
    AGENT = "agent"


def repository_of(target: Target) -> str:
    """Name of an image without its tag."""
    return f"pdd-testbed/{target.value}"


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides what is in the images."""

    root: RootImage
    torch: Torch
    recipe_digest: str
    code_digest: str
    wheels_digest: str

    def arguments(self) -> dict[str, str]:
        """Arguments of the build, equal for both targets."""
        guest = guest_environment()
        chosen = {name: guest[name] for name in _CAPABILITY}
        return {"BASE": self.root.name, "TORCH": self.torch.value, "NO_INDEX": "1", **chosen}

    def name(self, target: Target) -> str:
        """The image's name: equal content is an equal name, on every machine."""
        arguments = {**self.arguments(), "BASE": self.root.identity}
        about = [
            target.value, self.recipe_digest, self.code_digest, self.wheels_digest,
            sorted(arguments.items()),
        ]  # fmt: skip
        digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()
        return f"{repository_of(target)}:{digest[:16]}"


@dataclass(frozen=True, slots=True)
class Image:
    """An image of this tree in an Engine; ``built`` says whether it was built just now."""

    target: Target
    name: str
    id: str
    size_bytes: int
    built: bool


def build_images(
    engine: Engine, cache: Path, say: Callable[[str], None],
    base: str = "", torch: Torch = Torch.CPU,
) -> tuple[Image, ...]:  # fmt: skip
    """Both images of this tree, built where they are not there.

    Args:
        engine: where they are wanted.
        cache: the product's cache folder.
        say: told what takes time.
        base: see ``root_image``.
        torch: which build of torch ``agent`` gets.

    Raises:
        HostError: base image or packages are not to be had, a step failed, or the disk is full.
    """
    wheels = collected_wheels(checkout_file(REQUIREMENTS[1]), torch, cache, say)
    recipe = Recipe(
        root_image(engine, base, cache, say), torch, digest_of(recipe_files()),
        digest_of(code_files()), wheels.digest,
    )  # fmt: skip
    missing = [t for t in Target if engine.image(recipe.name(t)) is None]
    if missing:
        _refuse_full(cache)
        with (
            HostLedger(cache) as ledger,
            ledger.scratch(wheels.folder.parent, "context-") as making,
        ):
            archive = making / "context.tar"
            try:
                write_context(archive, (*recipe_files(), *code_files(), *_wheel_files(wheels)))
            except OSError as error:
                raise HostError(
                    "write the build context", str(archive), error.strerror or str(error), _ROOM
                ) from error
            _refuse_changed(recipe)
            for target in missing:
                engine.build(_order(recipe, target, archive), say)
    return tuple(_image(engine, recipe.name(t), t, t in missing) for t in Target)


def _refuse_full(cache: Path) -> None:
    """A private Engine's images lie below the cache; a host's Engine tells its own full disk."""
    free = shutil.disk_usage(cache).free
    if free < _LEAST_FREE_BYTES:
        raise HostError(
            "build images", str(cache),
            f"{free // 2**20} MiB are free, and {_LEAST_FREE_BYTES // 2**20} MiB are needed", _ROOM,
        )  # fmt: skip


def _refuse_changed(recipe: Recipe) -> None:
    """Raises HostError where the tree is no longer what the images' names say."""
    if (digest_of(recipe_files()), digest_of(code_files())) != (
        recipe.recipe_digest, recipe.code_digest,
    ):  # fmt: skip
        raise HostError(
            "build images", str(checkout_file(DOCKERFILE).parents[1]),
            "a file was changed while the build context was written", "call it again",
        )  # fmt: skip


def _wheel_files(wheels: Wheels) -> tuple[ContextFile, ...]:
    return tuple(ContextFile(f"{WHEELS}/{n}", wheels.folder / n) for n, _ in wheels.digests)


def _order(recipe: Recipe, target: Target, archive: Path) -> BuildOrder:
    labels = {
        LABEL: target.value, CODE_LABEL: recipe.code_digest,
        "org.opencontainers.image.base.name": recipe.root.name,
    }  # fmt: skip
    return BuildOrder(
        archive, DOCKERFILE, target.value, recipe.name(target), recipe.arguments(), labels, "none"
    )


def _image(engine: Engine, name: str, target: Target, built: bool) -> Image:
    stored = engine.image(name)
    if stored is None:
        raise HostError("build the image", name, "it is gone after its build", "build it again")
    return Image(target, name, stored.id, stored.size_bytes, built)


def name_for_compose(engine: Engine, images: tuple[Image, ...], torch: Torch) -> None:
    """Gives images the names under which compose.yaml and compose.gpu.yaml look for them.

    Raises:
        HostError: the Engine refuses.
    """
    for image in images:
        engine.tag(image.name, repository_of(image.target), "latest")
        if torch is Torch.CUDA:
            engine.tag(image.name, repository_of(image.target), "cuda")


def list_images(engine: Engine) -> tuple[StoredImage, ...]:
    """All images that were built here and are in the Engine, of this tree and of others."""
    return engine.images(LABEL)
