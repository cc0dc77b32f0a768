"""The compose lab as the guest builds it: an Engine of its own, then the plan's containers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.compose import Placement
from testbed.contract.plan import Plan
from testbed.lab.compose.guestengine import SOCKET, GuestEngine
from testbed.lab.compose.guestimage import PROGRAMS
from testbed.lab.compose.lab import Compose, ComposeLab
from testbed.lab.ledger import Ledger

PLACEMENT = "placement.json"
ENGINE = Path("/mnt/engine")
"""Where the guest sees the run's Engine: its disk and its programs."""
COMPOSE = "docker-compose"


@contextmanager
def guest_compose_lab(plan: Plan, run: Path, ledger: Ledger) -> Iterator[ComposeLab]:
    """Starts the Engine, builds the plan's network of containers; undoes both."""
    placement = Placement.model_validate_json((run / PLACEMENT).read_text(encoding="utf-8"))
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
        "DOCKER_HOST": f"unix://{SOCKET}",
        "GOMAXPROCS": "1",
    }
    compose = Compose(str(ENGINE / PROGRAMS / COMPOSE), environment)
    with (
        GuestEngine(ENGINE, run / "logs", ledger) as engine,
        ComposeLab(plan, run, placement, engine.client, compose, ledger) as lab,
    ):
        yield lab
