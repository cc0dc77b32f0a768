"""What the compose lab takes beyond the agents themselves: an Engine, and a process tree a node.

Nothing is shared as it is where agents are forked from one process: each container loads its
own torch. Measured in the lab guest with Engine 20.10 on one core, see docs/performance.md.
"""

from __future__ import annotations

from testbed.contract.network import Network
from testbed.contract.role import NodeKind, Role

_MIB = 2**20
ENGINE_BYTES = 700 * _MIB
"""dockerd, containerd, and the images' files that were read."""
SHIM_BYTES = 40 * _MIB
"""A container without its program."""
MODEL_BYTES = 320 * _MIB
"""A Python with torch; the others need ``LIGHT_BYTES``."""
LIGHT_BYTES = 60 * _MIB
ENGINE_S, NODE_S, MODEL_S = 6.0, 1.6, 7.5
"""Wall seconds for an Engine, for a container, and for importing torch in one."""
_WITH_MODEL = (Role.PREFILL, Role.RELAY, Role.DECODE)


def engine_memory(network: Network) -> int:
    """Bytes of guest memory that containers take beside what their programs hold."""
    models = _with_model(network)
    others = len(network.nodes) - models
    return (
        ENGINE_BYTES
        + len(network.nodes) * SHIM_BYTES
        + models * MODEL_BYTES
        + others * LIGHT_BYTES
    )  # fmt: skip


def engine_wall_s(network: Network) -> float:
    """Wall seconds until all containers are up."""
    return ENGINE_S + len(network.nodes) * NODE_S + _with_model(network) * MODEL_S


def _with_model(network: Network) -> int:
    return sum(n.kind is NodeKind.AGENT and n.role in _WITH_MODEL for n in network.nodes)
