"""Where a plan's containers run: images, run folder, user."""

from __future__ import annotations

from pydantic import Field

from testbed.contract.record import Record

UNPRIVILEGED = 10_001
"""User and group of agents where the run folder's owner is root."""
_MIB = 2**20


class Placement(Record):
    """What a plan does not say; ``placement.json`` of a run folder.

    Attributes:
        project: Compose's project name: a prefix of all that is made.
        router_image, agent_image: image names.
        run: the run folder on the engine's machine; containers see it at ``/mnt/run``.
        user, group: whom agents run as; never root.
        agent_bytes: memory limit of an agent.
        fabric_bytes: memory limit of a wire or router.
    """

    project: str
    router_image: str
    agent_image: str
    run: str
    user: int = Field(default=UNPRIVILEGED, ge=1)
    group: int = Field(default=UNPRIVILEGED, ge=1)
    agent_bytes: int = 1024 * _MIB
    fabric_bytes: int = 256 * _MIB
