"""The command line: parsing and printing only."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    0 done, 1 bad data, 2 bad usage, 3 guarantee refuted or budget overspent, 4 input/output, 130 interrupted.
    """
    try:
        if hasattr(signal, "pthread_sigmask"):  # an interrupted import can look like a broken package
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            from dptext.cli.console import prepare_streams

            prepare_streams()
            from dptext.cli.app import program, run

            arguments = sys.argv[1:] if arguments is None else arguments
            app = program(arguments)
        finally:
            if hasattr(signal, "pthread_sigmask"):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return run(app, arguments)
    except KeyboardInterrupt as error:
        advice = ". If the output exists, it is complete; else run the same command again"
        notes = getattr(error, "__notes__", [])
        lines = [f"interrupted{'' if notes else advice}", *notes]
        with suppress(OSError):  # nobody reads the messages
            sys.stderr.write("".join(f"dptext: {line}\n" for line in lines))
        return _INTERRUPTED
