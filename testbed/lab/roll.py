"""Which agents of a run have ended, and whether they were to."""

from __future__ import annotations

from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.errors import AgentError


class Roll:
    """All agents of a plan. Clients end by themselves; the others are told to."""

    def __init__(self, plan: Plan) -> None:
        self.nodes = frozenset(agent.node for agent in plan.agents)
        self._clients = frozenset(a.node for a in plan.agents if a.role is Role.CLIENT)
        self.ended: dict[str, int] = {}
        """Exit status of those that have ended."""
        self.stopping = False
        """Whether all were told to end."""
        self.excused: set[str] = set()
        """Those whose end a fault wants, however they end."""

    def end(self, node: str, status: int, how: str = "") -> None:
        """Strikes one off.

        Args:
            how: more about it, in words.

        Raises:
            AgentError: it failed, or ended before it was told to.
        """
        self.ended[node] = status
        if node in self.excused:
            return
        if status != 0 or (not self.stopping and node not in self._clients):
            more = f": {how}" if how else ""
            raise AgentError(
                "run an agent", node,
                f"it ended with status {status} before it was told to{more}",
                f"see logs/{node}.log",
            )  # fmt: skip

    def clients_ended(self) -> bool:
        """Whether every client has ended."""
        return self._clients <= self.ended.keys()

    def alive(self) -> frozenset[str]:
        """Those that have not ended."""
        return self.nodes - self.ended.keys()
