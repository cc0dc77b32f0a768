"""One tree of exceptions. Only the command line turns a leaf into an exit status.

Every error says what was attempted, on which object, why it failed and what to
do about it, so that a message can be acted on without reading this code.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses of the command line (a stable contract)."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INVALID = 3
    UNABLE = 4


class TestbedError(Exception):
    """Root of all errors that the testbed raises on purpose.

    Args:
        attempt: what was being done, for example ``"load scenario"``.
        subject: the object it was done to, for example a path or a name.
        cause: why it failed.
        remedy: what the user can do; may be empty where nothing helps.
    """

    __test__ = False  # not a test class, whatever its name suggests to pytest
    exit_status = ExitStatus.FAIL

    def __init__(self, attempt: str, subject: str, cause: str, remedy: str = "") -> None:
        self.attempt = attempt
        self.subject = subject
        self.cause = cause
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"cannot {self.attempt}: {self.subject}: {self.cause}"
        return f"{text}\n  remedy: {self.remedy}" if self.remedy else text


class UnitError(TestbedError):
    """A quantity without a unit, with an unknown unit, or out of range."""

    exit_status = ExitStatus.USAGE


class ScenarioError(TestbedError):
    """A scenario, topology or profile file is wrong; carries all faults at once."""

    exit_status = ExitStatus.USAGE

    def __init__(self, subject: str, faults: tuple[str, ...]) -> None:
        self.faults = faults
        super().__init__(
            "load", subject, "\n".join(("", *faults)), "mend the lines above; see docs/scenario.md"
        )


class UsageError(TestbedError):
    """The command was called in a way that cannot mean anything."""

    exit_status = ExitStatus.USAGE


class PlanError(TestbedError):
    """The scenario is well formed but physically impossible or contradictory."""

    exit_status = ExitStatus.USAGE


class HostError(TestbedError):
    """This machine cannot do what was asked (missing kernel, tool, memory, disk)."""

    exit_status = ExitStatus.UNABLE


class LabError(TestbedError):
    """Building or undoing the lab failed."""

    exit_status = ExitStatus.INVALID


class FidelityError(TestbedError):
    """The lab is not what the plan promised; its results would mean nothing."""

    exit_status = ExitStatus.INVALID


class AgentError(TestbedError):
    """An agent broke its contract: crashed, timed out or answered nonsense."""

    exit_status = ExitStatus.INVALID


class ProtocolError(TestbedError):
    """Bytes on the wire are not what the protocol allows (corrupt, truncated, oversized)."""


class AnalysisError(TestbedError):
    """Events of a run cannot be turned into metrics, verdict or report."""

    exit_status = ExitStatus.INVALID
