"""A `dptext` for shell lines that starts fast: forked from a process that has imported what commands need.

What runs is the command line as users have it, with the arguments, folder, environment and streams that the shell gave
it, in a process of its own. The imports alone were made before, once for each process of the tests: they took most of
the time of a page's commands. How the program itself starts is tested in ``tests/cli``.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_BEFOREHAND = (
    *("dptext.cli." + name for name in ("attack", "embed", "labels", "prepare", "start")),
    *("dptext.cli." + name for name in ("encode", "ledger", "privatize", "releases", "synthesize")),
    *("dptext.embeddings", "dptext.reports", "dptext.representations", "dptext.sentences", "dptext.synthesis"),
    *("pyarrow.parquet", "scipy.stats", "sklearn.feature_extraction.text", "sklearn.linear_model", "sklearn.metrics"),
)
_PROGRAM = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
asked = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
server.sendall(asked)
sys.exit(int(server.recv(3) or 255))
"""
_started: list[tuple[Path, subprocess.Popen[bytes]]] = []


def folders_of_programs(factory) -> str:
    """For the beginning of PATH: the folder of such a `dptext`, where Linux can pass streams on, and the environment's.

    `factory` makes folders, as pytest's does.
    """
    usual = str(Path(sys.executable).parent)
    if not sys.platform.startswith("linux"):
        return usual
    if not _started:
        folder = factory.mktemp("warm")
        address = f"\0{folder}"  # of no file: those have 107 characters at most, and stay when a process is killed
        command = [sys.executable, __file__, str(folder)]
        searched = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(searched)}
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        (folder / "dptext").write_text(_PROGRAM.format(python=sys.executable, address=address), encoding="utf-8")
        (folder / "dptext").chmod(0o755)
        _started.append((folder, server))
    return os.pathsep.join([str(_started[0][0]), usual])


def _serve(address: str) -> None:
    """Run requests until standard input, which the tests hold, is closed."""
    for name in _BEFOREHAND:
        import_module(name)
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    print("ready", flush=True)
    while sys.stdin not in (ready := select.select([listening, sys.stdin], [], [], 1.0)[0]):
        if ready:
            asking, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _answer(asking)
            asking.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _answer(asking: socket.socket) -> None:
    size, streams, _, _ = socket.recv_fds(asking, 4, 3)
    text = b""
    while len(text) < int.from_bytes(size, "big"):
        text += asking.recv(65536)
    child = os.fork()
    if child:
        asking.sendall(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        os._exit(0)
    asking.close()
    sys.argv, folder, environment = json.loads(text)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    from dptext.cli import main

    sys.exit(main())


if __name__ == "__main__":
    _serve(f"\0{sys.argv[1]}")
