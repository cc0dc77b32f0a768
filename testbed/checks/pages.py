"""Pages that transfers landed in, as their receivers told of them. Part of a history."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.checks.line import Line, job_of
from testbed.contract.event import Kind

PAGE_KINDS = frozenset({Kind.PAGES_TAKEN, Kind.PAGES_FREED, Kind.PAGE_OVERWRITTEN})


@dataclass(frozen=True, slots=True)
class PageStep:
    """Pages taken or freed by one attempt at a transfer, or one page that another wrote into.

    Attributes:
        epoch: of the transfer that took, freed or wrote.
        pages: how many; the page's number where one was overwritten.
        reason: why they were freed, the writer's where one was overwritten.
        writers: connections that could still bring blocks when they were freed.
        by: the request that wrote into a page of ``req``.
    """

    t: int
    node: str
    seq: int
    kind: Kind
    req: int
    epoch: int
    pages: int
    reason: str = ""
    writers: int = 0
    by: int = 0


def page_step(line: Line, t: int, node: str, seq: int, kind: Kind) -> PageStep:
    """One event of ``PAGE_KINDS``."""
    req, epoch = job_of(line), line.integer("epoch")
    if kind is Kind.PAGE_OVERWRITTEN:
        page, by = line.integer("page"), line.integer("by")
        return PageStep(t, node, seq, kind, req, epoch, page, line.text("freed"), by=by)
    pages = line.integer("pages")
    if kind is Kind.PAGES_TAKEN:
        return PageStep(t, node, seq, kind, req, epoch, pages)
    reason, writers = line.text("reason"), line.integer("writers")
    return PageStep(t, node, seq, kind, req, epoch, pages, reason, writers)
