"""Plain ``docker compose up`` on a machine whose kernel has no netem: in the lab guest.

The guest has an Engine with both images and the Compose plugin, and nothing of ours runs there
but what a user would type.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.lab.compose.archive import export_images
from testbed.lab.compose.engine import Engine
from testbed.lab.compose.guestimage import PROGRAMS, Stock, engine_copy
from testbed.lab.compose.images import Image, Target
from testbed.lab.compose.inside import COMPOSE
from testbed.lab.compose.plugin import find_plugin
from testbed.lab.guest.boot import Kernel, Orders, boot, tail
from testbed.lab.guest.kernel.cache import cache_root, kernel_path
from testbed.lab.hostledger import HostLedger
from testbed.run.up.plan import STARTED

INSIDE = Path(__file__).with_name("inside") / "up.py"
CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT_FILES = ("compose.yaml", "compose.gpu.yaml", ".env")
MEMORY_BYTES = 9 << 30
"""Sparse: what the planner compares with; some 3 GiB are touched."""
STUCK_AFTER_S = 600.0


@dataclass(frozen=True, slots=True)
class Up:
    """How ``docker compose up`` and ``down`` went."""

    folder: Path
    """What the guest left; Compose's words are in ``logs``."""
    status: int
    down: int
    left: tuple[str, ...]
    """Containers and networks that are there after ``down``."""
    began_ns: int

    @property
    def words(self) -> str:
        """All that ``up`` said."""
        return (self.folder / "logs" / "up.log").read_text("utf-8", "replace")

    @property
    def run(self) -> Path:
        """The run folder that it left."""
        (found,) = (path.parent for path in self.folder.glob("runs/*/*/plan.json"))
        return found

    def first_token_s(self) -> float:
        """From the call of ``up`` to the first token at the client."""
        plan = json.loads((self.run / "plan.json").read_text("utf-8"))
        barrier = int((self.run / "lab" / "word" / "barrier").read_text("ascii"))
        lines = (self.run / "events" / "c1.jsonl").read_text("utf-8").splitlines()
        first = min(e["t"] for e in map(json.loads, lines) if e["kind"] == "token")
        return (barrier - self.began_ns) / 1e9 + first / 1e9 * plan["scale"]["slow"]

    def stages_s(self) -> dict[str, float]:
        """Seconds from the call of ``up`` to each stage."""
        lab = self.run / "lab"
        planned = json.loads((lab / STARTED).read_text("utf-8"))["began_ns"]
        built = max(path.stat().st_mtime_ns for path in (lab / "built").iterdir())
        measured = max(path.stat().st_mtime_ns for path in (lab / "measured").glob("*.rows.json"))
        barrier = int((lab / "word" / "barrier").read_text("ascii"))
        found = {"planner": planned, "built": built, "measured": measured, "barrier": barrier}
        return {name: (at_ns - self.began_ns) / 1e9 for name, at_ns in found.items()}


@contextmanager
def stocked_engine(engine: Engine, images: dict[Target, Image]) -> Iterator[Path]:
    """The folder of an Engine for one guest: its disk with both images, and the plugin."""
    cache, plugin = cache_root(), find_plugin()

    def export(archive: Path) -> None:
        names = tuple(image.name for image in images.values())
        shutil.copyfile(export_images(engine, names, cache), archive)

    stock = Stock(tuple((image.name, image.id) for image in images.values()))
    with (
        HostLedger(cache) as ledger,
        engine_copy(stock, export, kernel(), cache, ledger, print) as copy,
    ):
        shutil.copyfile(plugin.program, copy / PROGRAMS / COMPOSE)
        (copy / PROGRAMS / COMPOSE).chmod(0o755)
        yield copy


def kernel() -> Kernel:
    """The lab kernel, which the caller knows to be built."""
    linux = kernel_path()
    assert linux is not None
    return Kernel(linux, linux.with_name("entropy.so"))


def up_in_guest(
    folder: Path, engine: Path, images: dict[Target, Image], *options: str,
    changes: dict[str, str] | None = None, owner: int | None = None,
) -> Up:  # fmt: skip
    """Boots a guest and calls ``docker compose up --exit-code-from client`` and ``down`` in it.

    Args:
        folder: for what the guest leaves; must not exist.
        options: arguments before ``up``, such as a profile.
        changes: more environment variables of the call.
        owner: whose the folder ``runs`` is; None: it is not there.
    """
    (folder / "logs").mkdir(parents=True)
    (folder / "project").mkdir()
    for name in PROJECT_FILES:
        shutil.copyfile(CHECKOUT / name, folder / "project" / name)
    shutil.copyfile(INSIDE, folder / "up.py")
    named = {f"TESTBED_{target.value.upper()}_IMAGE": images[target].name for target in Target}
    order = {
        "project": "project", "environment": {**named, **(changes or {})},
        "options": options, "words": ["--timestamps"],
        **({} if owner is None else {"owner": owner}),
    }  # fmt: skip
    (folder / "up.json").write_text(json.dumps(order), "utf-8")
    orders = Orders(
        folder, ("/mnt/run/up.py",), MEMORY_BYTES, 1, time.time_ns(), engine=engine, real=True,
        stuck_after_s=STUCK_AFTER_S,
    )  # fmt: skip
    outcome = boot(kernel(), orders, cache_root())
    assert outcome.status == 0, tail(folder / "logs" / "guest.log", 40)
    answers = json.loads((folder / "answers.json").read_text("utf-8"))
    return Up(
        folder, answers["up"][0], answers["down"][0],
        (*answers["containers"], *answers["networks"]), answers["up_began_ns"],
    )  # fmt: skip
