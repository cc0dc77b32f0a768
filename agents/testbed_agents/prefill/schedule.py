"""Which tokens the next prefill pass computes: first come, first served, in chunks. Pure.

::

    submit ─▶ [ job 3 │ job 2 │ job 1 ] ─▶ pass of at most `chunk_tokens` tokens
                                            from at most `max_batch` jobs

The oldest job gets the whole chunk if it can use it; what it leaves goes to the next.
So jobs end in the order of arrival, and a short job fills the last pass of a long one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """A prompt: ``cached`` tokens have KV already, ``uncached`` must be computed."""

    identity: int
    uncached: int
    cached: int

    def __post_init__(self) -> None:
        if self.uncached < 0 or self.cached < 0:
            raise ValueError(f"job {self.identity}: tokens cannot be fewer than none")


@dataclass(frozen=True, slots=True)
class Chunk:
    """``tokens`` tokens of a job behind ``context`` ones; ``last`` ends its prefill."""

    identity: int
    tokens: int
    context: int
    last: bool


class PrefillSchedule:
    """The queue of one P. One pass at a time: ``plan``, run it, ``complete``.

    Misuse (a pass planned twice, a job submitted twice) raises ValueError.
    """

    def __init__(self, chunk_tokens: int, max_batch: int) -> None:
        if chunk_tokens < 1 or max_batch < 1:
            raise ValueError("a pass needs at least one token and one job")
        self._chunk = chunk_tokens
        self._max_batch = max_batch
        self._jobs: OrderedDict[int, Job] = OrderedDict()  # what is left of each, oldest first
        self._planned: tuple[tuple[Job, Chunk], ...] = ()

    @property
    def jobs(self) -> int:
        """Jobs that wait or are under way."""
        return len(self._jobs)

    @property
    def tokens(self) -> int:
        """Tokens still to be computed: what a new job waits for."""
        return sum(job.uncached for job in self._jobs.values())

    def submit(self, job: Job) -> None:
        """Put a job at the end of the queue."""
        if job.identity in self._jobs:
            raise ValueError(f"job {job.identity} is here already")
        self._jobs[job.identity] = job

    def cancel(self, identity: int) -> bool:
        """Forget a job; False when it is not here. Its chunk of a running pass is ignored."""
        return self._jobs.pop(identity, None) is not None

    def plan(self) -> tuple[Chunk, ...]:
        """The next pass, oldest job first; empty when nothing waits.

        A job with nothing to compute takes a place in a pass and no tokens.
        """
        if self._planned:
            raise ValueError("the pass before is not complete")
        left = self._chunk
        planned: list[tuple[Job, Chunk]] = []
        for job in self._jobs.values():
            if len(planned) == self._max_batch or (job.uncached and not left):
                break
            if planned and not planned[-1][1].last:
                break  # nothing overtakes a job that goes on, not even one without tokens
            tokens = min(left, job.uncached)
            left -= tokens
            last = tokens == job.uncached
            planned.append((job, Chunk(job.identity, tokens, job.cached, last)))
        self._planned = tuple(planned)
        return tuple(chunk for _, chunk in planned)

    def complete(self) -> tuple[int, ...]:
        """The planned pass has run; returns the jobs whose prefill ended, oldest first."""
        if not self._planned:
            raise ValueError("no pass was planned")
        ended: list[int] = []
        for job, chunk in self._planned:
            if self._jobs.get(job.identity) is not job:
                continue  # cancelled meanwhile, perhaps submitted anew
            if chunk.last:
                del self._jobs[chunk.identity]
                ended.append(chunk.identity)
            else:
                self._jobs[chunk.identity] = Job(
                    job.identity, job.uncached - chunk.tokens, job.cached + chunk.tokens
                )
        self._planned = ()
        return tuple(ended)
