"""Command line: `resolvent COMMAND`. Each command is a thin file that is imported when it is called."""

from resolvent.cli.app import main

__all__ = ["main"]
