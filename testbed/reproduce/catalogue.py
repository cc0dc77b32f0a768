"""The reproductions by name."""

from __future__ import annotations

from importlib import import_module

from testbed.errors import UsageError
from testbed.reproduce.study import Study

TABLE2 = "table2"
"""Older than this frame, with a page of its own (see ``testbed.reproduce.table2``)."""
_TITLES = {TABLE2: "Table 2: connection pool under two distributions of hit rates"}
_MODULES: dict[str, str] = {
    "table4": "testbed.reproduce.table4",
    "fig7": "testbed.reproduce.fig7",
    "handoff": "testbed.reproduce.handoff",
    "fig8": "testbed.reproduce.fig8",
    "table5": "testbed.reproduce.table5",
    "drc": "testbed.reproduce.drc",
    "routing": "testbed.reproduce.routing",
    "parity": "testbed.reproduce.parity",
    "table1": "testbed.reproduce.table1",
    "table8": "testbed.reproduce.table8",
    "table7": "testbed.reproduce.table7",
    "amortise": "testbed.reproduce.amortise",
    "prfaas": "testbed.reproduce.prfaas",
    "pool": "testbed.reproduce.pool",
}
"""Name to the module that holds it as ``STUDY``; imported only when it is wanted."""


def known() -> dict[str, str]:
    """Name to title of everything that can be reproduced."""
    return _TITLES | {name: study_of(name).title for name in _MODULES}


def study_of(name: str) -> Study:
    """A study by name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in _MODULES:
        raise UsageError(
            "reproduce", name, f"known: {', '.join([TABLE2, *_MODULES])}",
            "testbed reproduce --list says what each is",
        )  # fmt: skip
    study: object = import_module(_MODULES[name]).STUDY
    if not isinstance(study, Study):
        raise UsageError("reproduce", name, f"{_MODULES[name]} holds no study")
    return study
