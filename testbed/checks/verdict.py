"""The verdict on a run, as ``verdict.json`` holds it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from testbed.checks.expectation import ExpectationResult
from testbed.checks.finding import Finding, Status
from testbed.contract.record import Record
from testbed.errors import AnalysisError, ExitStatus


class Verdict(Record):
    """The worst finding, all findings, and how they compare with the expectation."""

    verdict: Status
    findings: tuple[Finding, ...]
    expectation: ExpectationResult | None = None

    @property
    def exit_status(self) -> ExitStatus:
        """Exit status of the command: with an expectation, pass means that it held.

        An expectation that did not hold never hides that a run was invalid.
        """
        if self.expectation is not None:
            if self.expectation.held:
                return ExitStatus.PASS
            if self.verdict is Status.PASS:
                return ExitStatus.FAIL
        return {
            Status.PASS: ExitStatus.PASS,
            Status.FAIL: ExitStatus.FAIL,
            Status.INVALID: ExitStatus.INVALID,
        }[self.verdict]

    def in_words(self) -> str:
        """Return the verdict as one or two sentences."""
        broken = [
            finding
            for finding in self.findings
            if finding.decides and finding.status is self.verdict
        ]
        deciding = sum(finding.decides for finding in self.findings)
        text = {
            Status.PASS: f"All {deciding} checks pass.",
            Status.FAIL: f"{len(broken)} of {deciding} checks failed: {_names(broken)}.",
            Status.INVALID: (
                "The run is not faithful, so its figures mean nothing: "
                f"{_names(broken)} could not be established."
            ),
        }[self.verdict]
        if self.expectation is None:
            return text
        if self.expectation.held:
            return f"{text} This is what the scenario expects."
        return f"{text} The scenario expects otherwise: {'; '.join(self.expectation.against)}."


def _names(findings: list[Finding]) -> str:
    return ", ".join(finding.check for finding in findings)


def read_verdict(path: Path) -> Verdict:
    """Read ``verdict.json``."""
    try:
        return Verdict.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise AnalysisError("read verdict", str(path), str(error)) from error
