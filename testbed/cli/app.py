"""The typer application and the one place where errors become exit statuses."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

import typer
from rich.console import Console

from testbed.errors import ExitStatus, TestbedError

app = typer.Typer(
    name="testbed",
    help="A deterministic network lab for cross-datacenter prefill/decode disaggregation.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
errors = Console(stderr=True, highlight=False, soft_wrap=True)
console = Console(highlight=False)


def main() -> NoReturn:
    """Entry point: 0 pass, 1 fail, 2 usage, 3 invalid, 4 unable."""
    from testbed.cli import commands

    commands.register(app)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    sys.exit(_status())


def _status() -> int:
    try:
        result = app(standalone_mode=False)
        return int(result) if isinstance(result, int) else ExitStatus.PASS
    except TestbedError as error:
        errors.print(str(error), markup=False, style="red")
        return error.exit_status
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as error:
        errors.print(f"cannot understand the call: {error}", markup=False, style="red")
        errors.print("  remedy: testbed --help, or testbed COMMAND --help", markup=False)
        return ExitStatus.USAGE
    except (typer.Abort, KeyboardInterrupt):
        errors.print("interrupted; the guest and its files are gone", style="yellow")
        return 130
    except BrokenPipeError:
        return ExitStatus.PASS


def _interrupt(number: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that every undo runs."""
    raise KeyboardInterrupt
