"""``defects:``: where a protection may be switched off, and where that is refused.

Only in the field library, ``scenarios/field`` of the package, and only by a file there: neither
``--set`` nor a file elsewhere that extends one of it can do without a protection.
"""

from __future__ import annotations

from pathlib import Path

from testbed.scenario.data import field_folder
from testbed.scenario.document import Document

KEY = "defects"
_REMEDY = "leave defects out (a file that extends such a scenario writes defects: [])"


def misplaced(document: Document, path: Path) -> str | None:
    """Why the scenario of ``path`` may not have defects; None where it may.

    The line that is named with it is the one where ``defects`` is written.
    """
    try:
        inside = path.resolve().parent == field_folder().resolve()
    except OSError:
        inside = False
    if not inside:
        return (
            "switches protections off, which only scenarios of the field library "
            f"(scenarios/field) may; {_REMEDY}"
        )
    if document.place((KEY,)).startswith("--set"):
        return f"protections are switched off by a scenario file, not by --set; {_REMEDY}"
    return None
