"""The command line: turns exceptions into exit statuses, and nothing else of its own."""

from testbed.cli.app import main

__all__ = ["main"]
