"""What each fault did to the service, beside the time before it, and how it came back."""

from __future__ import annotations

from testbed.report import wording
from testbed.report.summary import RunSummary
from testbed.report.table import Table

_WORSE = 1.0
"""A speed after a fault over that during it that is below this is said aloud."""


def effects_table(run: RunSummary) -> Table:
    """One row a fault that came; without rows where there is none."""
    rows = []
    slower: list[str] = []
    for fault in run.plan.faults:
        own = {} if run.metrics is None else run.metrics.below(f"faults.{fault.name}")
        if not own:
            continue
        beside = own.get("after_over_during")
        if beside is not None and beside < _WORSE:
            slower.append(f"{fault.name} ({wording.share(beside)})")
        rows.append(
            (
                fault.name,
                *(_pair(own, name) for name in ("tokens_per_s", "transfer_bps", "ttft")),
                wording.seconds(own.get("recovery_s")),
                wording.seconds(own.get("transfer_recovery_s")),
                wording.share(beside),
            )
        )
    notes = [
        "Percentages are of the time before the fault, as long as the fault itself: during it / "
        "after it. Of the time to first token above 100 % is worse."
    ]
    if slower:
        notes.append(f"Transfers were slower after the fault than during it: {', '.join(slower)}.")
    return Table(
        caption="What the faults did",
        head=(
            "fault", "tokens a second", "transfer speed", "time to first token",
            "tokens back after", "transfers back after", "speed after over during",
        ),
        rows=tuple(rows), notes=tuple(notes),
    )  # fmt: skip


def _pair(own: dict[str, float], name: str) -> str:
    during, after = own.get(f"during_ratio.{name}"), own.get(f"after_ratio.{name}")
    return f"{wording.share(during)} / {wording.share(after)}"
