"""The command line: parsing, progress and printing only; one module a command."""

from dptext.cli.app import main

__all__ = ["main"]
