"""A soak from its first schedule to its last minimal scenario."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import PlanError, ScenarioError, UsageError
from testbed.plan.derive import derived_seed
from testbed.reproduce.hold import held
from testbed.reproduce.resume import stamp
from testbed.run.folder import write_json
from testbed.run.prepare import prepare
from testbed.run.provenance import file_digest
from testbed.scenario.data import DataKind, names
from testbed.scenario.load import scenario_path
from testbed.soak.attempt import attempt
from testbed.soak.book import Book, Entry
from testbed.soak.draw import Choice, draw_schedule, drawable
from testbed.soak.ground import Ground, ground_of
from testbed.soak.outcome import Outcome
from testbed.soak.schedule import Schedule, Stage, fingerprint, scenario_text
from testbed.soak.shrink import shrink
from testbed.soak.tally import Summary, summary

_SEEDS = 4
"""Runs of a soak take turns with so many workloads: the reference engine's answers are recalled."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked of a soak.

    Attributes:
        scenario: name or path of the base.
        schedules: how many, from number 1 on.
        seed: of the stream.
        minutes: wall time after which no run begins; None for no bound. What is left is done
            with ``resume``.
        jobs: runs at once.
        resume: go on with the soak that is in ``out``.
        kinds: kinds to draw; none mean all.
        shrink_runs: most runs to make one finding small; 0 leaves them as they are.
        keep: keep the run folders of schedules that pass, too.
        stuck_after_s: wall seconds without progress after which a run hangs.
    """

    scenario: str
    schedules: int
    seed: int
    out: Path
    minutes: float | None = None
    jobs: int = 1
    resume: bool = False
    kinds: tuple[str, ...] = ()
    shrink_runs: int = 30
    keep: bool = False
    stuck_after_s: float = 60.0


def default_folder(seed: int, root: Path = Path("runs")) -> Path:
    """``runs/soak/<start>-s<seed>``."""
    started = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S")
    return root / "soak" / f"{started}-s{seed}"


class _OverError(Exception):
    """The time is up: what is begun ends, nothing else begins."""


class _Soak:
    """One soak under way."""

    def __init__(
        self, order: Order, stage: Stage, ground: Ground, choices: tuple[Choice, ...], say: Say
    ) -> None:
        self.order, self.stage, self.ground, self.choices = order, stage, ground, choices
        self.book = Book(order.out)
        self.say = say
        self.stop = threading.Event()
        self._until = None if order.minutes is None else time.monotonic() + order.minutes * 60

    def time_is_up(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def seed_of(self, number: int) -> int:
        """Seed of a schedule's run: its workload and all chances."""
        return derived_seed(self.order.seed, "soak run", str(number % _SEEDS))

    def text(self, schedule: Schedule, number: int, more: str) -> str:
        name = f"{self.stage.name[:20]}-{self.order.seed % 10**6}-{number}"
        comment = f"testbed soak {self.order.scenario} --seed {self.order.seed}: schedule {number}"
        return scenario_text(
            self.stage, schedule, name, self.seed_of(number), f"{comment}{more}"
        )  # fmt: skip

    def one(self, number: int) -> None:
        """Draws, writes and runs one schedule."""
        schedule = draw_schedule(self.order.seed, number, self.ground, self.choices)
        key = fingerprint(schedule, self.seed_of(number))
        path = self.book.schedule_file(number)
        path.write_text(self.text(schedule, number, ""), encoding="utf-8")
        outcome = attempt(
            path, self.book.run_folder(number), self.stop, self.order.stuck_after_s, self.order.keep
        )
        self.book.note(Entry(key=key, number=number, kinds=schedule.kinds, outcome=outcome))
        self.say(f"{number}: {_words(outcome)} [{' '.join(schedule.kinds)}]")

    def all_at_once(self, work: Callable[[int], None], numbers: list[int]) -> None:
        """Works on numbers, ``jobs`` at a time, until all are done or the time is up."""

        def unless_over(number: int) -> None:
            if not self.time_is_up() and not self.stop.is_set():
                work(number)

        with ThreadPoolExecutor(self.order.jobs) as pool:
            futures = [pool.submit(unless_over, number) for number in numbers]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                self.stop.set()
                raise

    def unshrunk(self) -> list[int]:
        """The first schedule of each finding that has no minimal scenario yet."""
        first: dict[str, int] = {}
        for number, entry in self.book.numbered().items():
            if entry.outcome.is_finding and entry.outcome.came != "refused":
                first.setdefault(entry.outcome.label, number)
        return [n for n in first.values() if not self.book.minimal_file(n).is_file()]

    def make_small(self, number: int) -> None:
        """Shrinks the finding of one schedule and writes its minimal scenario."""
        entry = self.book.numbered()[number]
        schedule = draw_schedule(self.order.seed, number, self.ground, self.choices)
        seed = self.seed_of(number)
        candidate = self.order.out / "candidates" / f"{number:04}.yaml"
        place = self.order.out / "candidates" / f"{number:04}"

        def fails(smaller: Schedule) -> bool:
            key = fingerprint(smaller, seed)
            outcome = self.book.known(key)
            if outcome is None:
                if self.time_is_up():
                    raise _OverError
                candidate.write_text(self.text(smaller, number, ", candidate"), encoding="utf-8")
                outcome = attempt(candidate, place, self.stop, self.order.stuck_after_s, False)
                self.book.note(Entry(key=key, number=None, kinds=smaller.kinds, outcome=outcome))
                self.say(f"{number}, smaller: {_words(outcome)} [{' '.join(smaller.kinds)}]")
            return outcome.same_as(entry.outcome)

        def possible(smaller: Schedule) -> bool:
            candidate.write_text(self.text(smaller, number, ", candidate"), encoding="utf-8")
            try:
                prepare(str(candidate), place=self.order.out)
            except (PlanError, ScenarioError):
                return False
            return True

        try:
            small = shrink(schedule, self.ground, fails, possible, self.order.shrink_runs)
        except _OverError:
            return
        how = "nothing simpler fails" if small.least else "runs used up before it was smallest"
        more = f", made small in {small.runs} runs: {how}\n{entry.outcome.label}"
        path = self.book.minimal_file(number)
        path.write_text(self.text(small.schedule, number, more), encoding="utf-8")
        self.say(f"{number}: {len(small.schedule.faults)} of {len(schedule.faults)} faults: {path}")


def soak(order: Order, say: Say) -> Summary:
    """Runs, or goes on with, a soak; writes the summary as ``soak.json``.

    Raises:
        UsageError: the order means nothing, or its folder holds something else.
        ScenarioError, PlanError: the base is wrong.
        HostError: this machine cannot run it.
    """
    if order.schedules < 1 or order.jobs < 1 or order.shrink_runs < 0:
        raise UsageError("soak", order.scenario, "that is less than one schedule or job")
    base = prepare(order.scenario, place=order.out)
    ground = ground_of(base.scenario, base.plan, base.requests)
    path = scenario_path(order.scenario)
    shipped = base.scenario.name in names(DataKind.SCENARIOS) and "/" not in order.scenario
    own = base.scenario.file.model_dump(mode="json", exclude_none=True)
    stage = Stage(base.scenario.name, None if shipped else own)
    work = _Soak(order, stage, ground, drawable(ground, order.kinds), say)
    with held(order.out):
        of = {
            **stamp(), "scenario": file_digest(path), "seed": order.seed, "kinds": [*order.kinds],
        }  # fmt: skip
        work.book.open(of, order.resume)
        done = work.book.numbered()
        work.all_at_once(work.one, [n for n in range(1, order.schedules + 1) if n not in done])
        if order.shrink_runs:
            work.all_at_once(work.make_small, work.unshrunk())
        found = summary(order.scenario, order.seed, order.schedules, work.book)
        write_json(order.out / "soak.json", found.model_dump(mode="json"))
    return found


def _words(outcome: Outcome) -> str:
    failed = f"; {outcome.failed} of {outcome.asked} requests failed" if outcome.failed else ""
    what = f": {outcome.check}: {outcome.words}" if outcome.is_finding else ""
    return f"{outcome.came.value}{what}{failed}, {outcome.wall_s:.0f} s"
