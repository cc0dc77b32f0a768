"""Command line of the reference."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from testbed.errors import TestbedError
from testbed_agents.reference.write import write_reference


def main(arguments: list[str] | None = None) -> int:
    """Writes reference.jsonl of a run folder; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m testbed_agents.reference")
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--processes", type=int, help="engines at once; default: one a core")
    parser.add_argument("--weights", type=Path, default=None, help="flat file; default: the cache")
    parser.add_argument("--anew", action="store_true", help="compute even what was kept")
    options = parser.parse_args(arguments)
    try:
        print(write_reference(options.run, options.processes, options.weights, options.anew))
    except TestbedError as error:
        print(error, file=sys.stderr)
        return int(error.exit_status)
    return 0


if __name__ == "__main__":
    sys.exit(main())
