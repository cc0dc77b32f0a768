"""The seam between the judge and its checks."""

from __future__ import annotations

from typing import Protocol

from testbed.checks.case import Case
from testbed.checks.finding import Finding


class Check(Protocol):
    """One claim about a run.

    To add a check: write a class with these three members in a module named for the
    claim, and add an instance to ``judge.CHECKS``.
    """

    @property
    def name(self) -> str:
        """Stable name, in kebab case; scenarios refer to it in ``expect:``."""
        ...

    @property
    def claim(self) -> str:
        """What must hold, as a plain sentence."""
        ...

    def examine(self, case: Case) -> Finding:
        """Say whether the claim holds. May raise: the judge turns that into invalid."""
        ...
