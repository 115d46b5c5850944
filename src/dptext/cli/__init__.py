"""The command line: parsing, progress and printing only; one module a command."""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    0 done, 1 bad data, 2 bad usage, 3 promise refuted or budget overspent, 4 input/output, 130 interrupted.
    """
    came: list[int] = []
    held = _hold_interrupts(came)  # before anything that takes time is imported, here and above
    try:
        from dptext.cli.console import standard_streams

        with standard_streams():
            try:
                from dptext.cli.app import program, run

                given = sys.argv[1:] if arguments is None else arguments
                app = program(given)
                if held:
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                if came:
                    raise KeyboardInterrupt
                return run(app, given)
            except KeyboardInterrupt:
                sys.stderr.write(
                    "dptext: interrupted. If the output exists, it is complete; else run the same command again\n"
                )
                return _INTERRUPTED
    finally:
        if held:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _hold_interrupts(came: list[int]) -> bool:
    """Note Ctrl-C while packages are imported: some would take it for a package that is broken."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    try:
        signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    except ValueError:  # not in the main thread
        return False
    return True
