"""Run a command and print its wall time, processor time and peak memory as JSON; a process of its own.

A child starts with the peak memory of the process that forked it (Linux keeps the larger of the two through exec),
so a benchmark that has just held a gigabyte must not fork the command that it measures. This process is small.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    start = time.perf_counter()
    child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)  # Popen must not wait again
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cpu = used.ru_utime + used.ru_stime
    print(json.dumps({"exit": child.returncode, "seconds": seconds, "cpu_seconds": cpu, "peak_bytes": peak}))


if __name__ == "__main__":
    main()
