"""Did RLD tell MD every token that it emitted? A handoff without ids would cost no byte.

RLD tells MD the id of each token of its own, as it emits it; without an MD it tells nobody.
What the messages took is at least one byte an id. Where MD was lost, nothing need be sent.
"""

from __future__ import annotations

from testbed.checks.authority_single import NO_PLANE
from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.plane import RelayEnd, Routed
from testbed.contract.serving import FirstToken

LEAST_BYTES, MOST_BYTES = 1, 256
"""Of a message for each id that it tells. The most: a name of 64 letters and six whole numbers
fit into it well."""


class IdsTold:
    """Ids told to MD are those of all of RLD's tokens, in at least a byte each."""

    name = "ids-told"
    claim = "RLD told MD the id of every token that it emitted, in messages of a fitting size."

    def examine(self, case: Case) -> Finding:
        """Compare ids and bytes of every RLD's last word with its tokens."""
        serving = case.plan.agents[0].serving
        if serving is None:
            return found(self.name, self.claim, NO_PLANE, [])
        base = int(serving.first_token is FirstToken.PREFILL)
        routes = case.history.plane.route_of()
        broken: list[str] = []
        ids = size = 0
        for end in case.history.plane.relay_ends:
            ids, size = ids + end.ids, size + end.size
            route = routes.get(end.req)
            lost = route is not None and route.decode in case.history.lost
            broken.extend(f"request {end.req} {fault}" for fault in _faults(end, route, base, lost))
        evidence = f"{ids:,} ids in {size:,} bytes"
        return found(self.name, self.claim, evidence, broken)


def _faults(end: RelayEnd, route: Routed | None, base: int, lost: bool) -> list[str]:
    faults: list[str] = []
    own = end.own_tokens(base)
    due = own if route is not None and route.decode else 0
    if end.ids != due:
        faults.append(f"has {own} tokens of {end.node}, which told {end.ids} of {due} ids")
    least = 0 if lost else LEAST_BYTES * end.ids
    if not least <= end.size <= MOST_BYTES * end.ids:
        faults.append(f"has {end.ids} ids of {end.node} in {end.size} bytes")
    return faults
