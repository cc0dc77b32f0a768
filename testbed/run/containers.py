"""What a run in containers needs on the host: images, the Engine's disk, where agents go."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed.compose import Placement
from testbed.compose.placement import UNPRIVILEGED
from testbed.lab.compose.archive import export_images
from testbed.lab.compose.engine import usable_engine
from testbed.lab.compose.guestimage import PROGRAMS, Stock, engine_copy
from testbed.lab.compose.images import Image, Target, build_images
from testbed.lab.compose.inside import COMPOSE, PLACEMENT
from testbed.lab.compose.plugin import find_plugin
from testbed.lab.compose.steadyprogram import copy_steady
from testbed.lab.guest.boot import Kernel
from testbed.lab.hostledger import HostLedger

PROJECT = "pdd"
"""Each run has an Engine of its own in the guest, so one name does."""


@contextmanager
def lent_engine(
    run: Path, kernel: Kernel, cache: Path, ledger: HostLedger, say: Callable[[str], None]
) -> Iterator[Path]:
    """The folder of this run's Engine: disk and programs; writes ``placement.json``.

    Raises:
        HostError: images cannot be built or found, or the disk is full.
        LabError: the disk with the images cannot be prepared.
    """
    plugin = find_plugin()
    with usable_engine(cache, say) as engine, ExitStack() as stack:
        images = build_images(engine, cache, say)

        def export(archive: Path) -> None:
            shutil.copyfile(export_images(engine, tuple(i.name for i in images), cache), archive)

        stock = Stock(tuple((image.name, image.id) for image in images))
        copy = stack.enter_context(engine_copy(stock, export, kernel, cache, ledger, say))
        lent = stack.pop_all()
    with lent:
        copy_steady(plugin.program, copy / PROGRAMS / COMPOSE)
        _place(run, images)
        yield copy


def _place(run: Path, images: tuple[Image, ...]) -> None:
    named = {image.target: image.name for image in images}
    owner, group = os.stat(run).st_uid, os.stat(run).st_gid
    placement = Placement(
        project=PROJECT,
        router_image=named[Target.ROUTER],
        agent_image=named[Target.AGENT],
        run="/mnt/run",
        user=owner or UNPRIVILEGED,
        group=group if owner else UNPRIVILEGED,
    )
    (run / PLACEMENT).write_text(placement.model_dump_json(indent=1), encoding="utf-8")
