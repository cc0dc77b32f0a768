"""The peer: iperf3 through the very network of the pool study, in the same guest.

``python -m benchmarks.iperf3 [--flows 16] [--seconds 2] [--ours GBIT_PER_CPU_S]``

Counted are the bits that the receiver got. Boot, set-up and slow start are taken out by
a baseline: the same flows for 1 s, whose bits and times are subtracted.
"""

from __future__ import annotations

import argparse
import json
import shutil

from benchmarks.figures import against, spread
from benchmarks.machine import machine
from benchmarks.traffic import SCENARIO, TENTH
from benchmarks.trial import Trial, run_trial, scratch
from testbed.errors import HostError
from testbed.run.prepare import prepare


def received_gbit(trial: Trial) -> float:
    """Bits that the server of a trial received."""
    report = json.loads((trial.folder / "flows.json").read_text(encoding="utf-8"))
    return float(report["end"]["sum_received"]["bytes"]) * 8 / 1e9


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=("tenth", "full"), default="full")
    parser.add_argument("--flows", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=2, help="virtual seconds of traffic")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ours", type=float, help="our Gbit per CPU second, for the ratio")
    options = parser.parse_args()
    if shutil.which("iperf3") is None:
        raise HostError("measure iperf3", "iperf3", "it is not installed", "apt install iperf3")
    prepared = prepare(SCENARIO, TENTH if options.scale == "tenth" else ())
    print(machine())
    with scratch() as root:

        def one(name: str, flows: int, seconds: int) -> Trial:
            folder = root / name
            settings = {"flows": flows, "seconds": seconds}
            return run_trial(
                prepared, folder, "iperf3_flows.py",
                inputs={"iperf3.json": json.dumps(settings)},
            )  # fmt: skip

        short = [one(f"short-{n}", options.flows, 1) for n in range(options.runs)]
        long = [one(f"long-{n}", options.flows, 1 + options.seconds) for n in range(options.runs)]
        gbit = [received_gbit(b) - received_gbit(a) for a, b in zip(short, long, strict=True)]
        wall = spread(
            "iperf3", "Gbit/wall s",
            [g / (b.wall_s - a.wall_s) for g, a, b in zip(gbit, short, long, strict=True)],
        )  # fmt: skip
        cpu = spread(
            "iperf3", "Gbit/CPU s",
            [g / (b.cpu_s - a.cpu_s) for g, a, b in zip(gbit, short, long, strict=True)],
        )  # fmt: skip
    print(wall, cpu, sep="\n")
    if options.ours is not None:
        print(against(spread("ours", "Gbit/CPU s", [options.ours]), cpu))


if __name__ == "__main__":
    main()
