"""A plan as a Compose file: pure, no I/O (decision 7).

The lab room starts what is rendered here; nothing else describes a container.
"""

from testbed.compose.document import ComposeFile, compose_yaml
from testbed.compose.placement import Placement
from testbed.compose.render import render_compose

__all__ = ["ComposeFile", "Placement", "compose_yaml", "render_compose"]
