"""What a soak found: counted by outcome, by kind of fault, and finding by finding. Pure but for
looking which minimal scenarios there are."""

from __future__ import annotations

from collections import Counter

from testbed.contract.record import Record
from testbed.errors import ExitStatus
from testbed.report.table import Table
from testbed.soak.book import Book, Entry
from testbed.soak.draw import RULES, UNDRAWN
from testbed.soak.outcome import Came


class KindTally(Record):
    """One kind of fault: in how many schedules it was, and what came of them."""

    kind: str
    schedules: int
    passed: int
    findings: int
    requests_failed: int
    """Requests that failed, with a reason, in the schedules that passed."""


class Found(Record):
    """One finding, seen once or often.

    Attributes:
        label: names it.
        words: what the first one said.
        numbers: of the schedules that have it.
        minimal: path of its minimal scenario; None where there is none yet.
    """

    label: str
    words: str
    numbers: tuple[int, ...]
    minimal: str | None


class Summary(Record):
    """What came of a soak."""

    scenario: str
    seed: int
    asked: int
    """Schedules that were asked for."""
    run: int
    came: dict[str, int]
    """Schedules by what came of them."""
    requests: int
    requests_failed: int
    reasons: dict[str, int]
    """Failed requests by reason, in all schedules."""
    kinds: tuple[KindTally, ...]
    undrawn: dict[str, str]
    findings: tuple[Found, ...]

    @property
    def exit_status(self) -> ExitStatus:
        """0 where all pass, 3 where a run was invalid or refused, else 1."""
        if not self.findings:
            return ExitStatus.PASS
        unsound = self.came.get(Came.INVALID, 0) + self.came.get(Came.REFUSED, 0)
        return ExitStatus.INVALID if unsound else ExitStatus.FAIL

    def in_words(self) -> str:
        """One sentence."""
        each = ", ".join(f"{count} {came}" for came, count in sorted(self.came.items()))
        return (
            f"{self.run} of {self.asked} schedules run: {each or 'none'}; "
            f"{self.requests_failed} of {self.requests} requests failed with a reason; "
            f"{len(self.findings)} different findings."
        )

    def tables(self) -> tuple[Table, ...]:
        """By kind, and by finding."""
        kinds = Table(
            caption="what came of it, by kind of fault",
            head=("kind", "schedules", "passed", "findings", "requests failed where it passed"),
            rows=tuple(
                (
                    one.kind,
                    *map(str, (one.schedules, one.passed, one.findings, one.requests_failed)),
                )
                for one in self.kinds
            ),
        )
        findings = Table(
            caption="findings",
            head=("finding", "schedules", "minimal scenario"),
            rows=tuple(
                (one.label, ", ".join(map(str, one.numbers[:8])), one.minimal or "none yet")
                for one in self.findings
            ),
            worded=(1, 2),
        )
        return (kinds, findings) if self.findings else (kinds,)


def summary(scenario: str, seed: int, asked: int, book: Book) -> Summary:
    """Counts what is in the book."""
    entries = book.numbered()
    outcomes = [entry.outcome for entry in entries.values()]
    reasons: Counter[str] = Counter()
    for outcome in outcomes:
        reasons.update(outcome.reasons)
    return Summary(
        scenario=scenario,
        seed=seed,
        asked=asked,
        run=len(entries),
        came=dict(Counter(outcome.came.value for outcome in outcomes)),
        requests=sum(outcome.asked for outcome in outcomes),
        requests_failed=sum(outcome.failed for outcome in outcomes),
        reasons=dict(reasons.most_common()),
        kinds=tuple(_kind(kind, list(entries.values())) for kind in RULES),
        undrawn=dict(UNDRAWN),
        findings=_findings(entries, book),
    )


def _kind(kind: str, entries: list[Entry]) -> KindTally:
    mine = [entry.outcome for entry in entries if kind in entry.kinds]
    passed = [outcome for outcome in mine if not outcome.is_finding]
    return KindTally(
        kind=kind,
        schedules=len(mine),
        passed=len(passed),
        findings=len(mine) - len(passed),
        requests_failed=sum(outcome.failed for outcome in passed),
    )


def _findings(entries: dict[int, Entry], book: Book) -> tuple[Found, ...]:
    by_label: dict[str, list[int]] = {}
    for number, entry in entries.items():
        if entry.outcome.is_finding:
            by_label.setdefault(entry.outcome.label, []).append(number)
    found = []
    for label, numbers in sorted(by_label.items(), key=lambda item: (-len(item[1]), item[1])):
        small = [book.minimal_file(n) for n in numbers if book.minimal_file(n).is_file()]
        found.append(
            Found(
                label=label, words=entries[numbers[0]].outcome.words, numbers=tuple(numbers),
                minimal=str(small[0]) if small else None,
            )
        )  # fmt: skip
    return tuple(found)
