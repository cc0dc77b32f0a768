"""Gigabits per second of the transport alone: pool, framing, digests, events, TCP_INFO; no models.

``python -m benchmarks.transport [--scale tenth|full] [--count TRANSFERS]``

The load is that of the wide and skewed pool study (80 transfers a second, raw draw).
Boot and set-up are taken out by a baseline: the same guest with a single transfer.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.figures import spread
from benchmarks.machine import machine
from benchmarks.traffic import SCENARIO, TENTH
from benchmarks.trial import INSIDE, Trial, run_trial, scratch
from testbed.run.prepare import prepare

TOKEN_BYTES = {"full": 4_768, "tenth": 477}
LOAD = "transport_load.py"


def sent_gbit(trial: Trial) -> float:
    """Payload of all acknowledged transfers."""
    return float(json.loads((trial.folder / "sent.json").read_text(encoding="utf-8"))["gbit"])


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=("tenth", "full"), default="tenth")
    parser.add_argument("--count", type=int, default=800)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--verify", choices=("substance", "all"), default="substance")
    parser.add_argument("--low-water", type=int, default=262_144, help="bytes")
    options = parser.parse_args()
    prepared = prepare(SCENARIO, TENTH if options.scale == "tenth" else ())
    print(machine())
    with scratch() as root:

        def one(folder: Path, count: int) -> Trial:
            settings = {
                "count": count, "token_bytes": TOKEN_BYTES[options.scale],
                "verify": options.verify, "low_water": options.low_water,
            }  # fmt: skip
            inputs = {
                "transport.json": json.dumps(settings),
                LOAD: (INSIDE / LOAD).read_text(encoding="utf-8"),
            }
            return run_trial(prepared, folder, "transport_alone.py", inputs)

        quiet = [one(root / f"quiet-{n}", 1) for n in range(options.runs)]
        busy = [one(root / f"busy-{n}", options.count) for n in range(options.runs)]
        wall_s = spread("boot and set-up, wall", "s", [trial.wall_s for trial in quiet])
        cpu_s = spread("boot and set-up, CPU", "s", [trial.cpu_s for trial in quiet])
        gbit = [sent_gbit(trial) for trial in busy]
        print(wall_s, cpu_s, sep="\n")
        for what, unit, rates in (
            (
                "transport alone", "Gbit/wall s",
                [g / (t.wall_s - wall_s.median) for g, t in zip(gbit, busy, strict=True)],
            ),
            (
                "transport alone", "Gbit/CPU s",
                [g / (t.cpu_s - cpu_s.median) for g, t in zip(gbit, busy, strict=True)],
            ),
        ):  # fmt: skip
            print(spread(what, unit, rates))


if __name__ == "__main__":
    main()
