"""Did every page of KV belong to one transfer at a time, and did only that one write it?"""

from __future__ import annotations

from collections import Counter

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.contract.event import Kind


class PagesOwned:
    """Replays who had pages at each receiver, and looks for writes into those of others."""

    name = "pages-owned"
    claim = "No page of KV was given away while somebody could still write it, and none was lost."

    def examine(self, case: Case) -> Finding:
        """Walk takes, frees and overwrites in time order; not applicable without pages."""
        bounds = {agent.node: agent.guard.pages for agent in case.plan.agents}
        if not any(bounds.values()):
            return found(self.name, self.claim, "not applicable: pages have no bound", [])
        broken: list[str] = []
        held: Counter[str] = Counter()
        owners: dict[tuple[str, int, int], int] = {}
        taken = overwritten = 0
        for step in case.history.pages:
            key = (step.node, step.req, step.epoch)
            if step.kind is Kind.PAGES_TAKEN:
                taken += 1
                held[step.node] += step.pages
                if key in owners:
                    broken.append(f"{_who(*key[1:])} took pages twice at {step.node}")
                owners[key] = step.pages
                if held[step.node] > bounds.get(step.node, 0):
                    broken.append(f"{held[step.node]} pages were taken at {step.node} at once")
            elif step.kind is Kind.PAGES_FREED:
                held[step.node] -= step.pages
                if owners.pop(key, None) != step.pages:
                    broken.append(f"{_who(*key[1:])} freed pages at {step.node} that it had not")
                if step.writers:
                    broken.append(
                        f"{_who(*key[1:])} gave {step.pages} pages back ({step.reason}) while "
                        f"{step.writers} connection(s) could still write them"
                    )
            else:
                overwritten += 1
                broken.append(
                    f"a late write of {_who(step.by, step.epoch)}, whose pages were freed "
                    f"({step.reason}), landed in page {step.pages} of request {step.req}"
                )
        broken.extend(
            f"{_who(req, epoch)} never gave its {pages} pages back at {node}"
            for (node, req, epoch), pages in owners.items()
            if node not in case.history.lost and not _fell(case, node)
        )
        evidence = f"{taken} transfer(s) had pages, {overwritten} page(s) were overwritten"
        return found(self.name, self.claim, evidence, broken)


def _fell(case: Case, node: str) -> bool:
    """Whether a fault ended the agent: its memory ended with it."""
    return any(fall.node == node for fall in case.history.falls)


def _who(req: int, epoch: int) -> str:
    return f"request {req}" + (f", epoch {epoch}," if epoch else "")
