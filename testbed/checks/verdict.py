"""The verdict on a run, as ``verdict.json`` holds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from testbed.checks.endings import Endings
from testbed.checks.expectation import ExpectationResult
from testbed.checks.fault import brief
from testbed.checks.finding import Finding, Status, worst
from testbed.contract.defect import Defect, without
from testbed.contract.record import Record
from testbed.errors import AnalysisError, ExitStatus

EXITS = {
    Status.PASS: ExitStatus.PASS, Status.FAIL: ExitStatus.FAIL, Status.INVALID: ExitStatus.INVALID,
}  # fmt: skip
"""Exit status of a command by what it found."""


def _is_empty(defects: tuple[Defect, ...]) -> bool:
    return not defects


class Verdict(Record):
    """What came of a run.

    Attributes:
        verdict: without an expectation the worst finding that decides. With one, pass means
            that it held; where it did not, fail, or invalid where the run is invalid.
        findings_verdict: the worst finding that decides, whatever the scenario expects.
        findings: what each check found.
        expectation: how the findings and metrics compare with what the scenario expects.
        requests: how many failed, which no finding needs to say; None where the record could
            not be read.
        protections_off: what was switched off on purpose.
    """

    verdict: Status
    findings_verdict: Status
    findings: tuple[Finding, ...]
    expectation: ExpectationResult | None = None
    requests: Endings | None = None
    protections_off: tuple[Defect, ...] = Field(default=(), exclude_if=_is_empty)

    @property
    def exit_status(self) -> ExitStatus:
        """Exit status of the command."""
        return EXITS[self.verdict]

    def in_words(self) -> str:
        """Return the verdict as one or two sentences."""
        broken = [
            finding
            for finding in self.findings
            if finding.decides and finding.status is self.findings_verdict
        ]
        deciding = sum(finding.decides for finding in self.findings)
        remarks = sum(
            not finding.decides and finding.status is not Status.PASS for finding in self.findings
        )
        also = f"; {remarks} remark{'' if remarks == 1 else 's'}" if remarks else ""
        failed = "" if self.requests is None else self.requests.in_words()
        also = f"; {failed}{also}" if failed else also
        text = {
            Status.PASS: f"All {deciding} checks pass{also}.",
            Status.FAIL: f"{len(broken)} of {deciding} checks failed: {_names(broken)}{also}.",
            Status.INVALID: (
                "The run is not faithful, so its figures mean nothing: "
                f"{_names(broken)} could not be established."
            ),
        }[self.findings_verdict]
        off = without(self.protections_off)
        text = f"{text} {off}" if off else text
        if self.expectation is None:
            return text
        if self.expectation.held:
            return f"{text} This is what the scenario expects."
        against = "; ".join(self.expectation.against)
        return f"The scenario's expectation failed: {against}. {text}"


def conclude(
    findings: Sequence[Finding],
    held: ExpectationResult | None,
    requests: Endings | None = None,
    protections_off: tuple[Defect, ...] = (),
) -> Verdict:
    """Reduce findings, and how they compare with the expectation if any, to a verdict."""
    raw = worst(finding.status for finding in findings if finding.decides)
    verdict = raw
    if held is not None and held.held:
        verdict = Status.PASS
    elif held is not None and raw is Status.PASS:
        verdict = Status.FAIL
    return Verdict(
        verdict=verdict,
        findings_verdict=raw,
        findings=tuple(findings),
        expectation=held,
        requests=requests,
        protections_off=protections_off,
    )


def write_verdict(folder: Path, verdict: Verdict) -> None:
    """Write ``verdict.json`` of a run folder, whole or not at all."""
    path = folder / "verdict.json"
    draft = path.with_name(path.name + ".part")
    draft.write_text(verdict.model_dump_json(indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def _names(findings: list[Finding]) -> str:
    return ", ".join(finding.check for finding in findings)


def read_verdict(path: Path) -> Verdict:
    """Read ``verdict.json``."""
    try:
        return Verdict.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise AnalysisError(
            "read verdict", str(path), brief(error), "judge the run again: testbed report FOLDER"
        ) from error
