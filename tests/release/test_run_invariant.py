"""A run that is killed at any step and started again gives the bytes of an uninterrupted run, and is charged once."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from dptext.ledger.ledger import Ledger

pytestmark = pytest.mark.slow

STEPS = ("reserve", "first block", "last block", "statement", "publish", "settle")
ROWS, BLOCK = 12, 4
MARKER = "zyxmarker"

# The command line with the same random bytes in each process, killed after the step named in KILL_AFTER.
SCRIPT = """
import hashlib, os, signal, sys

def entropy(count):
    frame, callers = sys._getframe(1), []
    while frame is not None and len(callers) < 6:
        callers.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return hashlib.sha512(" ".join(callers).encode()).digest()[:count]

os.urandom = entropy
import dptext.io.batches, dptext.io.documents
from dptext.cli import main
from dptext.ledger.ledger import Ledger
from dptext.release.job import Job

for module in list(sys.modules.values()):
    if module.__name__.startswith("dptext") and hasattr(module, "BATCH_ROWS"):
        module.BATCH_ROWS = BLOCK

step, out = os.environ.get("KILL_AFTER"), os.path.abspath(sys.argv[sys.argv.index("-o") + 1])

def after(owner, name, is_step):
    function = getattr(owner, name)
    def wrapped(*arguments, **options):
        result = function(*arguments, **options)
        if is_step(*arguments):
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(owner, name, wrapped)

blocks = {"first block": 1, "last block": BLOCKS}.get(step)
targets = {"statement": out + ".privacy.json", "publish": out}
if step in ("reserve", "settle"):
    after(Ledger, step, lambda *_: True)
elif blocks is not None:
    after(Job, "add", lambda job, *_: len(job.parts) == blocks)
elif step is not None:
    for name in ("replace", "rename", "link"):
        after(os, name, lambda _, target: os.path.abspath(os.fspath(target)) == targets[step])
sys.exit(main(sys.argv[1:]))
""".replace("BLOCKS", str(ROWS // BLOCK)).replace("= BLOCK", f"= {BLOCK}")


@pytest.fixture(params=["privatize", "encode", "shuffled"])
def command(request, tmp_path):
    """Return the arguments of a command and prepare its input, word vectors and ledger in the current folder."""
    words = ["tea", "cup", "tax", "law", "road", "ship"]
    points = np.random.default_rng(1).normal(size=(len(words), 4))
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in point)}\n" for word, point in zip(words, points, strict=True)]
    (tmp_path / "vectors.txt").write_text("".join(lines))
    rows = [{"text": f"{words[n % 6]} {words[(n + 1) % 6]} {MARKER}", "n": n} for n in range(ROWS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Ledger.create(tmp_path / "budget.ledger", epsilon=1e4, delta=1e-3)
    if request.param == "privatize":
        options = ["--vectors", "vectors.txt", "--keep", "n!", "-o", "out.jsonl"]
    else:
        options = ["--encoder", "vectors.txt", "-o", "out.parquet"]
        options += ["--shuffled", "500"] if request.param == "shuffled" else []
    return [
        "privatize" if request.param == "privatize" else "encode",
        "in.jsonl",
        *options,
        "--epsilon",
        "4",
        "--ledger",
        "budget.ledger",
        "--quiet",
    ]


def run(folder, arguments, kill_after=None):
    environment = {name: value for name, value in os.environ.items() if name != "KILL_AFTER"}
    if kill_after is not None:
        environment["KILL_AFTER"] = kill_after
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False, umask=0o022,
    )  # fmt: skip


def published(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("out.*"))}


def spent(folder):
    """Return the number of releases that the ledger counts, and the epsilon of the row that has spent most."""
    ledger = Ledger(folder / "budget.ledger")
    releases = ledger.releases()
    return len(releases), sorted(str(release.guarantee) for release in releases)


@pytest.fixture(scope="module")
def results():
    """Return what uninterrupted runs gave, by command."""
    return {}


@pytest.fixture
def uninterrupted(command, results, tmp_path_factory, tmp_path):
    kind = " ".join(command)
    if kind not in results:
        folder = tmp_path_factory.mktemp("uninterrupted")
        for path in tmp_path.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        done = run(folder, command)
        assert done.returncode == 0, done.stderr
        results[kind] = published(folder), spent(folder)
    return results[kind]


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_run_is_resumed_with_the_same_bytes_and_charged_once(step, command, uninterrupted, tmp_path):
    killed = run(tmp_path, command, kill_after=step)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert spent(tmp_path)[0] == 1  # without a second run, the ledger counts the release
    for path in tmp_path.iterdir():
        if path.name not in (*published(tmp_path), "in.jsonl", "vectors.txt"):
            assert path.stat().st_mode & 0o077 == 0, f"{path.name} is readable by others"
    repeated = run(tmp_path, [*command, "--resume"])
    assert repeated.returncode == 0, repeated.stderr
    assert (published(tmp_path), spent(tmp_path)) == uninterrupted
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == set()
