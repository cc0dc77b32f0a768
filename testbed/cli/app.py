"""The typer application and the one place where errors become exit statuses."""

from __future__ import annotations

import io
import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

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
INTERRUPTED = 130
"""Exit status after Ctrl-C, SIGTERM or SIGHUP, as shells have it."""
_INTERRUPTED_WORDS = "interrupted; nothing of it goes on, and a run folder that it made says so"
errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
console = Console(highlight=False, soft_wrap=True, emoji=False)
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY.PATH=VALUE", help="Override one key, checked like the file."
    ),
]
_PIPE_WIDTH = 200
"""Columns where the output is no terminal, so that no figure is broken over two lines."""


def for_tables(out: Console) -> Console:
    """The same output, wide enough for tables."""
    if out.is_terminal:
        return out
    return Console(file=out.file, highlight=False, width=_PIPE_WIDTH, emoji=False)


def main() -> NoReturn:
    """Entry point: 0 pass, 1 fail, 2 usage, 3 invalid, 4 unable, 130 interrupted."""
    from testbed.cli import commands

    commands.register(app)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants to go on
            signal.signal(number, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(_status())


def _status() -> int:
    try:
        result = app(standalone_mode=False)
        if result == INTERRUPTED:  # typer turns Ctrl-C into this
            errors.print(_INTERRUPTED_WORDS, style="yellow")
        return int(result) if isinstance(result, int) else ExitStatus.PASS
    except TestbedError as error:
        errors.print(str(error), markup=False, style="red")
        return error.exit_status
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as error:
        told = getattr(error, "format_message", error.__str__)()
        errors.print(f"cannot understand the call: {told}", markup=False, style="red")
        errors.print("  remedy: testbed --help, or testbed COMMAND --help", markup=False)
        return ExitStatus.USAGE
    except (typer.Abort, KeyboardInterrupt):
        errors.print(_INTERRUPTED_WORDS, style="yellow")
        return INTERRUPTED
    except BrokenPipeError:
        return ExitStatus.PASS
    except OSError as error:
        errors.print(
            f"cannot use {error.filename or 'a file'}: {error.strerror or error}", markup=False,
            style="red",
        )  # fmt: skip
        return ExitStatus.UNABLE


def _interrupt(number: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that every undo runs."""
    raise KeyboardInterrupt
