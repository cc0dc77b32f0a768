"""Gigabits emulated per wall second and per CPU second: the pool study with real agents.

``python -m benchmarks.traffic [--scale tenth|full] [--measure SECONDS] [--parallel 1|2]``

Counted are payload bits of acknowledged transfers. Boot, network, agents and pool are
taken out by a baseline: the same plan with a single request. All that the agents do
while they serve stays in: framing, digests, events, TCP_INFO, real tokens.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Spread, against, against_bar, spread
from benchmarks.machine import machine
from benchmarks.trial import Trial, run_trial, scratch
from testbed.contract.event import Kind
from testbed.run.execute import analyse
from testbed.run.prepare import Prepared, prepare

SCENARIO = "pool-wide-skewed"
TENTH = ("links.wan.rate=1 Gbit/s", "links.wan.buffer=8 MiB")
"""As ``reproduce table2 --quick``: link rates and, by the offered load, sizes over ten."""
BAR = {"full": 8.0, "tenth": 5.0}
"""Gbit per wall second and core."""
ONE_REQUEST = (
    "workload.arrivals={kind: even, every: 1 s, count: 1}",
    "workload.offered_load=null",
    "window.warm_up=0 s",
    "window.measure=1 s",
)


@dataclass(frozen=True, slots=True)
class Served:
    """A trial with traffic: what it carried and whether its verdict was pass."""

    trial: Trial
    gbit: float
    verdict: str


def overrides(scale: str, measure_s: int) -> tuple[str, ...]:
    """The scenario's overrides of a scale."""
    window = ("window.warm_up=0 s", f"window.measure={measure_s} s")
    return (*(TENTH if scale == "tenth" else ()), *window)


def acknowledged_gbit(folder: Path) -> float:
    """Payload of all acknowledged transfers of a run."""
    bits = 0
    for path in (folder / "events").glob("*.jsonl"):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if f'"{Kind.TRANSFER_ACKED.value}"' in line:
                    bits += json.loads(line)["size"] * 8
    return bits / 1e9


def serve(prepared: Prepared, folder: Path) -> Served:
    """One run with traffic, judged afterwards so that no broken run is counted."""
    trial = run_trial(prepared, folder)
    finished = analyse(trial.folder, prepared.scenario)
    return Served(trial, acknowledged_gbit(trial.folder), finished.verdict.verdict.value)


def measure(options: argparse.Namespace) -> tuple[Spread, Spread]:
    """Rates per wall second and per CPU second, net of the baseline; prints as it goes."""
    settings = overrides(options.scale, options.measure)
    with scratch() as root:
        quiet = [
            run_trial(prepare(SCENARIO, (*settings, *ONE_REQUEST)), root / f"quiet-{number}")
            for number in range(options.runs)
        ]
        start_wall = spread("boot and set-up, wall", "s", [trial.wall_s for trial in quiet])
        start_cpu = spread("boot and set-up, CPU", "s", [trial.cpu_s for trial in quiet])
        print(start_wall, start_cpu, sep="\n", flush=True)
        done: list[Served] = []
        for seed in range(1, options.runs + 1):
            one = serve(prepare(SCENARIO, settings, seed), root / f"run-{seed}")
            print(
                f"seed {seed}: {one.gbit:.1f} Gbit, wall {one.trial.wall_s:.1f} s, "
                f"CPU {one.trial.cpu_s:.1f} s, {one.verdict}", flush=True,
            )  # fmt: skip
            done.append(one)
        wall = spread(
            "emulated, one run", "Gbit/wall s",
            [one.gbit / (one.trial.wall_s - start_wall.median) for one in done],
        )  # fmt: skip
        cpu = spread(
            "emulated", "Gbit/CPU s",
            [one.gbit / (one.trial.cpu_s - start_cpu.median) for one in done],
        )  # fmt: skip
        print(wall, cpu, against_bar(wall, BAR[options.scale]), sep="\n", flush=True)
        if options.parallel > 1:
            print_parallel(options, settings, root, wall, start_wall.median)
    return wall, cpu


def print_parallel(
    options: argparse.Namespace,
    settings: tuple[str, ...],
    root: Path,
    alone: Spread,
    start_s: float,
) -> None:
    """Several runs at once, one a core: all their traffic over the wall time of all."""
    plans = [prepare(SCENARIO, settings, seed) for seed in range(1, options.parallel + 1)]
    rates = []
    for number in range(options.runs):
        folders = [root / f"side-{number}-{seed}" for seed in range(len(plans))]
        began = time.monotonic()
        with ThreadPoolExecutor(len(plans)) as pool:
            trials = list(pool.map(run_trial, plans, folders))
        wall_s = time.monotonic() - began - start_s
        rates.append(sum(acknowledged_gbit(trial.folder) for trial in trials) / wall_s)
    together = spread(f"emulated, {options.parallel} runs at once", "Gbit/wall s", rates)
    print(together, against(together, alone), sep="\n")


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=("tenth", "full"), default="tenth")
    parser.add_argument("--measure", type=int, default=30, help="virtual seconds of arrivals")
    parser.add_argument("--parallel", type=int, choices=(1, 2), default=1)
    parser.add_argument("--runs", type=int, default=3, help="repetitions, each another seed")
    options = parser.parse_args()
    print(machine())
    measure(options)


if __name__ == "__main__":
    main()
