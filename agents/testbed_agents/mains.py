"""What each role's agent does, by role."""

from __future__ import annotations

from testbed.contract.role import Role
from testbed_agents.client.agent import client_main
from testbed_agents.decode.agent import decode_main
from testbed_agents.prefill.agent import prefill_main
from testbed_agents.relay.server import relay_main
from testbed_agents.router.agent import router_main
from testbed_agents.runtime import Main

MODEL_FREE = (Role.CLIENT, Role.ROUTER)
"""Roles that load no model."""
MAINS: dict[Role, Main] = {
    Role.CLIENT: client_main,
    Role.ROUTER: router_main,
    Role.PREFILL: prefill_main,
    Role.RELAY: relay_main,
    Role.DECODE: decode_main,
}
