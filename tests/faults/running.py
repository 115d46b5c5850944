"""One run of the command line in a forked process, which has all imports from its parent and is quick."""

from __future__ import annotations

import atexit
import ctypes
import gc
import hashlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from faults.injection import How, Injection, Operation

_SMALL = {"BATCH_ROWS": 4, "_CHUNK_BYTES": 1 << 12, "_WORTH_KEEPING": 0}
"""Small blocks, so that short inputs have several; little read-ahead; small pools are kept too."""
_PATIENCE = 60.0
_SUBREAPER = 36  # prctl: workers whose parent was killed become ours, so that we see them end


@dataclass(frozen=True)
class Outcome:
    """The exit code (minus the signal of a kill; None if the run had to be ended), the output and the operations."""

    code: int | None
    out: str
    err: str
    happened: bool
    operations: list[Operation]


def adopt_orphans() -> None:
    """Workers whose parent was killed become ours, so that we see whether they end."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def run(
    injection: Injection,
    root: Path,
    arguments: Sequence[str],
    *,
    secret: str,
    fault: How = How.COUNT,
    number: int = 0,
    modules: Path | None = None,
) -> Outcome:
    """Run ``dptext`` in ``root/work`` with temporary files in ``root/tmp``; the secret decides all random bits."""
    outputs = [root.parent / name for name in ("stdout", "stderr")]
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setpgid(0, 0)
            gc.disable()
            _prepare(root, outputs, secret)
            injection.arm(root, fault, number)
            code = _call(arguments)
            if modules is not None:
                modules.write_text("\n".join(sys.modules))
        except BaseException:  # noqa: BLE001  shown, as an interpreter does
            traceback.print_exc()
        os._exit(code)
    with suppress(OSError):  # here as well, so that it is done before the group is waited for
        os.setpgid(child, child)
    ended = _wait(child)
    injection.disarm()
    out, err = (path.read_text(errors="backslashreplace") for path in outputs)
    return Outcome(ended, out, err, injection.has_happened, injection.operations())


def _prepare(root: Path, outputs: Sequence[Path], secret: str) -> None:
    for descriptor, path in enumerate(outputs, 1):
        opened = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(root / "work")
    os.umask(0o022)
    os.environ["TMPDIR"] = str(root / "tmp")
    os.environ["DPTEXT_CACHE"] = str(root / "cache")
    tempfile.tempdir = str(root / "tmp")  # or Python would try it out, and leave the trial there if that is stopped
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    # a worker that is started anew has no handler of its parent
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    os.urandom = _Entropy(secret)
    # a worker that is started anew imports for seconds; nothing else depends on how it is started
    multiprocessing.get_context = lambda _method=None, context=multiprocessing.get_context: context("fork")
    for name, module in list(sys.modules.items()):
        for constant, value in _SMALL.items() if name.startswith("dptext.") else ():
            if hasattr(module, constant):
                setattr(module, constant, value)


class _Entropy:
    """The bytes of the operating system, decided by a secret and by who asks for the how-manieth time.

    So a run that leaves out a step, because it was done before, still draws the same noise in the others.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._read_request: Counter[str] = Counter()

    def __call__(self, count: int) -> bytes:
        frame, names = sys._getframe(1), []
        while frame is not None and len(names) < 6:
            names.append(frame.f_code.co_qualname)
            frame = frame.f_back
        who = " ".join(names)
        if "NoiseKey.__init__" not in names:  # a file whose turn comes in another run is the same file
            self._read_request[who] += 1
        return hashlib.sha512(f"{self._secret} {who} {self._read_request[who]}".encode()).digest()[:count]


def _call(arguments: Sequence[str]) -> int:
    """What the script `dptext` does, and the interpreter after it."""
    from dptext.cli import main

    code = 1
    try:
        code = main(list(arguments))
    except BaseException:  # noqa: BLE001  shown, as an interpreter does
        traceback.print_exc()
    try:
        atexit._run_exitfuncs()
    except BaseException:  # noqa: BLE001  shown, as an interpreter does
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _wait(child: int) -> int | None:
    """The exit code of the child, when its whole group is gone; None where something had to be ended."""
    code: int | None = None
    deadline = time.monotonic() + _PATIENCE
    pause, ended = 0.0005, False
    while True:
        try:
            result, status = os.waitpid(-child, os.WNOHANG)
        except ChildProcessError:
            return None if ended else code
        if result == child:
            code = os.waitstatus_to_exitcode(status)
        if result == 0:
            if time.monotonic() > deadline and not ended:
                ended = True
                os.killpg(child, signal.SIGKILL)
            time.sleep(pause)
            pause = min(0.005, pause * 1.5)
