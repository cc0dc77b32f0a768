"""A plan as a Compose file: pure, no I/O (decision 7).

Two ways: as the compose lab starts it (``render``), and for plain ``docker compose up``, where
containers are on their own (``standalone``). Nothing else describes a container.
"""

from testbed.compose.document import ComposeFile, compose_yaml
from testbed.compose.placement import Placement
from testbed.compose.render import render_compose

__all__ = ["ComposeFile", "Placement", "compose_yaml", "render_compose"]
