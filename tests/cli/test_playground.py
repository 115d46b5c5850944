"""``dptext playground``: it prints an address that works, and Ctrl-C ends it."""

import signal
import subprocess
import sys

import httpx
import pytest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_prints_an_address_serves_and_stops(number):
    command = [sys.executable, "-m", "dptext", "playground"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()
        address = first.removeprefix("The playground is at ").strip()
        assert "Ctrl-C stops it" in process.stderr.readline()
        assert httpx.get(address, timeout=60, trust_env=False).status_code == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "Stopped.\n")
