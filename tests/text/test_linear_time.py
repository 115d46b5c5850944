"""No text takes much longer than another of its length: patterns that go back and forth would take hours for a book."""

import json
import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="limits of processor time are set otherwise there")

HOSTILE = [  # beginning, repeated part and end of a text
    *(("", "a'", ""), ("", "a’", "s"), ("", "don't'", "n't"), ("'", "é'", "!"), ("", "a\u0301'", "'s"), ("", "1'", "")),
    *(("http://", "a'", ""), ("-www.", "a_", ""), ("www.", "a.", "_"), ("http://", "1.", "'s"), ("", "www.", "!")),
    *(("a@", "b.", ""), ("", "a@b.", ""), ("@", "a_", "!"), ("", "http://", "<"), ("", "x://", "."), ("a", "%", "@")),
    *(("", "a.", "_"), ("", "1,", ""), ("", "a:", ""), ("", 'א"', ""), ("", "_", "'"), ("a", " ", "'s")),
    *(
        ("a", "\u0301", "'s"),
        ("a'", "\u200d", "a"),
        ("", "👩\u200d", ""),
        ("", "\U0001f1e9", "a"),
        ("1", "\u0301", ",1"),
    ),
]
SIZE = 500_000
ORDINARY = "The doctor doesn't know l'ami, 3.14 at www.x.org or me@x.org. "
MOST = 6.0  # the slowest takes 3 times as long as ordinary text; one that is quadratic takes 10 times as long and more
TRIES = 3
CPU_SECONDS = 300  # of the child, however busy the machine is

CHILD = """
import json, sys, time
from dptext.text.tokens import fold, is_single_word, kind_of, letters_between, split

for line in sys.stdin:
    text = json.loads(line)
    start = time.process_time()
    for function in (split, kind_of, fold, letters_between, is_single_word):
        function(text)
    print(json.dumps(time.process_time() - start), flush=True)
"""


@pytest.fixture(scope="module")
def seconds():
    """Return the processor time of all steps for a text, in a child process with a limit."""
    limit = (CPU_SECONDS, CPU_SECONDS)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
    )

    def measured(text):
        child.stdin.write(json.dumps(text) + "\n")
        child.stdin.flush()
        line = child.stdout.readline()
        assert line, "the child was stopped: it took too long"
        return json.loads(line)

    yield measured
    child.stdin.close()
    child.stdout.close()
    child.wait()


def long(before, part, after):
    return before + part * (SIZE // len(part)) + after


@pytest.mark.slow
def test_no_text_takes_much_longer_than_ordinary_text(seconds):
    slow = HOSTILE
    for _ in range(TRIES):
        limit = MOST * seconds(long("", ORDINARY, ""))
        slow = [entry for entry in slow if seconds(long(*entry)) > limit]
        if not slow:
            return
    raise AssertionError(f"{slow!a} took more than {MOST} times as long as ordinary text")
