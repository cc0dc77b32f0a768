"""``python -m testbed.lab.guest.kernel build|path``: the kernel commands without the rest.

``make setup`` calls it so that a kernel can be built before anything else works.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from testbed.errors import ExitStatus, TestbedError
from testbed.lab.guest.kernel.build import build_kernel
from testbed.lab.guest.kernel.cache import kernel_path
from testbed.lab.guest.kernel.progress import ProgressLine


def main(argv: list[str]) -> int:
    """Runs one command; returns the exit status of the contract."""
    parser = argparse.ArgumentParser(prog="python -m testbed.lab.guest.kernel")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the lab kernel, or find it built")
    build.add_argument("--source", type=Path, help="kernel tree or tarball, 6.6 or later")
    commands.add_parser("path", help="print where the built kernel is")
    arguments = parser.parse_args(argv)
    if arguments.command == "path":
        path = kernel_path()
        if path is None:
            print("no lab kernel is built; run: testbed kernel build", file=sys.stderr)
            return ExitStatus.UNABLE
        print(path)
        return ExitStatus.PASS
    progress = ProgressLine()
    try:
        print(build_kernel(arguments.source, progress))
    except TestbedError as error:
        progress.close()
        print(error, file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        progress.close()
        print("interrupted; nothing half made is left", file=sys.stderr)
        return 130
    return ExitStatus.PASS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
