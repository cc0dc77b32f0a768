"""The paper's deployment on one core, and two seeds side by side on two.

``python -m benchmarks.paper [--measure 43.5] [--pairs 1] [--alone 1] [--set KEY=VALUE …]``

``pdd-paper`` (10 P, one RLD, 16 MD, 64K-token prompts at 11.5 requests/s): 43.5 s of arrivals
are about 500 requests, after 5 s of warm-up. A guest has one core. Wall and CPU seconds of the
guest include boot, network and agents; the reference engine is timed by itself, in one
process, as if the other core were busy. Memory is what the guest is given, which it cannot
exceed, and the largest process of guest and reference.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.figures import against, against_bar, spread
from benchmarks.machine import machine
from benchmarks.trial import run_trial, scratch
from testbed.lab.program import run_module
from testbed.run.prepare import prepare

WALL_BAR_S, MEMORY_BAR_GIB, LOSS_BAR = 1800.0, 10.0, 1.10


@dataclass(frozen=True, slots=True)
class Ran:
    """One guest at the paper's scale."""

    requests: int
    tokens: int
    wall_s: float
    cpu_s: float
    reference_s: float
    given_gib: float
    peak_gib: float


def run_one(folder: Path, seed: int, overrides: tuple[str, ...]) -> Ran:
    """One seed, in a process of its own; the reference is computed, never recalled."""
    prepared = prepare("pdd-paper", overrides, seed, None, None, None)
    trial = run_trial(prepared, folder)
    began = time.monotonic()
    done = run_module("testbed_agents.reference", str(folder), "--anew", "--processes", "1")
    if done.status != 0:
        sys.exit(done.err)
    reference_s = time.monotonic() - began
    answered = sum(request.output_tokens for request in prepared.requests)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20  # KiB of the largest
    return Ran(
        len(prepared.requests), answered, trial.wall_s, trial.cpu_s, reference_s,
        prepared.plan.guest.memory_bytes / 2**30, peak,
    )  # fmt: skip


def side_by_side(folder: Path, seeds: tuple[int, ...], overrides: tuple[str, ...]) -> list[Ran]:
    """All seeds at once, each on a core of its own."""
    with ProcessPoolExecutor(len(seeds), mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run_one, folder / str(seed), seed, overrides) for seed in seeds]
        return [future.result() for future in futures]


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=float, default=43.5, help="seconds of arrivals")
    parser.add_argument("--alone", type=int, default=1, help="runs of each seed by itself")
    parser.add_argument("--pairs", type=int, default=1, help="runs of both seeds at once")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = parser.parse_args()
    overrides = (f"window.measure={options.measure:g} s", *options.overrides)
    print(machine())
    alone: list[Ran] = []
    both: list[Ran] = []
    with scratch() as folder:
        for number in range(options.alone):
            for seed in (1, 2):
                alone += side_by_side(folder / f"alone{number}", (seed,), overrides)
                print(alone[-1], flush=True)
        for number in range(options.pairs):
            both += side_by_side(folder / f"both{number}", (1, 2), overrides)
            print(*both[-2:], sep="\n", flush=True)
    _print(alone, both)


def _print(alone: list[Ran], both: list[Ran]) -> None:
    """Figures against the bars; two at once against the same seeds alone."""
    wall = spread("guest, one seed on one core", "s", [one.wall_s for one in alone])
    rate = spread("guest alone", "tokens/wall s", [one.tokens / one.wall_s for one in alone])
    cost = spread("guest alone", "CPU ms/token", [1000 * one.cpu_s / one.tokens for one in alone])
    reference = spread("reference, one process", "s", [one.reference_s for one in alone])
    print(wall, against_bar(wall, WALL_BAR_S, lower_is_better=True), rate, cost, sep="\n")
    print(reference, against(reference, wall), sep="\n")
    given = spread("memory of the guest", "GiB", [one.given_gib for one in alone])
    print(given, against_bar(given, MEMORY_BAR_GIB, lower_is_better=True), sep="\n")
    print(spread("largest process", "GiB", [one.peak_gib for one in alone]))
    if both:
        pair = spread("the same, two seeds at once", "s", [one.wall_s for one in both])
        loss = spread("two at once / alone", "x", [pair.median / wall.median])
        print(pair, against_bar(loss, LOSS_BAR, lower_is_better=True), sep="\n")


if __name__ == "__main__":
    main()
