"""A run that waits where a test stops it: no test has to be quicker than the program."""

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager

HOLD = """
import os, sys
from dptext.release.job import Job

def hold(job, *arguments, add=Job.add, **options):
    add(job, *arguments, **options)
    if 0 < int(os.environ.get("HOLD_AFTER", "0")) <= len(job.parts):
        print("held", flush=True)
        sys.stdin.read()

Job.add = hold
"""
"""Before a script: stop after ``HOLD_AFTER`` parts of a file until standard input is closed."""

_COMMAND = HOLD + "from dptext.cli import main\nsys.exit(main(sys.argv[1:]))\n"


def killed(script, *arguments, when, after):
    """Kill a script that begins with `HOLD` when a condition holds, or after a number of parts."""
    with _started([script, *arguments], after) as process:
        while process.poll() is None and not when() and not select.select([process.stdout], [], [], 0.001)[0]:
            pass
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL


@contextmanager
def held(*arguments, after=1):
    """The command line, stopped after a number of parts; standard error is text, and read by the test."""
    with _started(["-c", _COMMAND, *arguments], after) as process:
        assert process.stdout.readline() == "held\n", process.stderr.read()
        yield process
        process.communicate()


def _started(arguments, after):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "HOLD_AFTER": str(after)}
    return subprocess.Popen([sys.executable, *map(str, arguments)], env=environment, text=True, **pipes)
