"""The command line as a user meets it: files in, files and statement out, exit codes, one line an error."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import dptext
from dptext.cli import main
from dptext.io.artifacts import file_digest

SECRET = "Zebulon"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, glove):
    """A small GloVe text file, so that a run takes no time."""
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    rows = (f"{word} {' '.join(f'{x:.5f}' for x in glove[word])}" for word in glove.words[:800])
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"text": t, "label": n, "name": SECRET}) + "\n" for n, t in enumerate(TEXTS)),
        encoding="utf-8",
    )
    return tmp_path


TEXTS = [f"{SECRET} said the doctor lied, on 3 May.", "", "mail me@x.org", "don't"]


@pytest.fixture
def run(capsys, vectors):
    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def privatize(run, vectors):
    def call(*arguments):
        return run("privatize", *arguments, "--vectors", vectors)

    return call


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_privatize_writes_private_texts_and_their_statement(work, privatize):
    code, out, err = privatize("in.jsonl", "-o", "out.jsonl", "--epsilon", 5, "--keep", "label")
    assert (code, out) == (0, "")
    rows = rows_of(work / "out.jsonl")
    assert [row["label"] for row in rows] == [0, 1, 2, 3]
    assert all(set(row) == {"text", "label"} for row in rows)
    assert SECRET.lower() not in (work / "out.jsonl").read_text().lower()
    assert "<number>" in rows[0]["text"]
    assert rows[2]["text"].endswith("<email>")
    statement = dptext.PrivacyStatement.from_json((work / "out.jsonl.privacy.json").read_text())
    assert statement.data_sha256 == file_digest("out.jsonl")
    assert "the column 'label', unchanged" in statement.exposed
    assert statement.unit == "document"
    assert not statement.seeded
    assert "unit      document" in err
    assert "pure      epsilon at most" in err
    assert sorted(path.name for path in work.iterdir()) == ["in.jsonl", "out.jsonl", "out.jsonl.privacy.json"]


def test_a_seed_repeats_the_release_and_is_said_but_not_told(work, privatize):
    for name in ("a.jsonl", "b.jsonl"):
        assert privatize("in.jsonl", "-o", name, "--epsilon", 2, "--seed", 918273)[0] == 0
    assert (work / "a.jsonl").read_bytes() == (work / "b.jsonl").read_bytes()
    statement = (work / "a.jsonl.privacy.json").read_text()
    assert dptext.PrivacyStatement.from_json(statement).seeded
    assert "918273" not in statement


def write(name, content):
    with open(name, "wb") as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())


BAD_INPUT = {
    "missing file": ("nothing.jsonl", None, [], 4, "cannot open 'nothing.jsonl'"),
    "a folder": ("folder.jsonl", "folder", [], 1, "holds no file of a known format"),
    "empty": ("bad.jsonl", "", [], 1, "holds no documents"),
    "empty txt": ("bad.txt", "", [], 1, "holds no documents"),
    "csv header only": ("bad.csv", "text\n", [], 1, "holds no documents"),
    "not UTF-8": ("bad.txt", f"fine\n{SECRET} ".encode() + b"\xff\n", [], 1, "row 2: expected UTF-8"),
    "UTF-16": ("bad.txt", f"{SECRET}\n".encode("utf-16-le"), [], 1, "add --encoding utf-16-le"),
    "cut json": ("bad.jsonl", f'{{"text": "a"}}\n{{"text": "{SECRET}', [], 1, "row 2: expected a JSON object"),
    "empty line": ("bad.jsonl", '{"text": "a"}\n\n', [], 1, "row 2: expected a JSON object, the line is empty"),
    "json list": ("bad.jsonl", f'["{SECRET}"]\n', [], 1, "expected one JSON object per line"),
    "cut gzip": ("bad.txt.gz", gzip.compress(b"a\n" * 999)[:-9], [], 1, "ends early"),
    "no gzip": ("bad.txt.gz", SECRET, [], 1, "broken or ends early"),
    "open quotes": ("bad.csv", f'text\nfine\n"{SECRET}', [], 1, "row 2 (line 3): the row ends inside quotes"),
    "too few columns": (
        "bad.csv",
        f"text,label\na,b\n{SECRET}\n",
        [],
        1,
        "expected 2 columns as in the header, got 1 (line 3)",
    ),
    "same header twice": ("bad.csv", "text,text\na,b\n", [], 1, "two columns of the header have the same name"),
    "no column": ("bad.jsonl", f'{{"body": "{SECRET}"}}\n', [], 1, "row 1: expected a column 'text'"),
    "no kept column": ("bad.jsonl", '{"text": "a"}\n', ["--keep", "label"], 1, "row 1: expected a column 'label'"),
    "number": ("bad.jsonl", '{"text": 12}\n', [], 1, "row 1: expected a string in 'text', the value is of type int"),
    "late": ("bad.jsonl", '{"text": "a"}\n' * 3000 + "{", [], 1, "row 3001"),
    "unknown suffix": ("bad.docx", SECRET, [], 2, "ends in .txt, .jsonl, .csv, .tsv"),
    "txt with columns": ("bad.txt", SECRET, ["--keep", "label"], 2, ".txt file has no columns"),
    "epsilon zero": ("in.jsonl", None, ["--epsilon", "0"], 2, "epsilon must be a finite number above 0, got 0"),
    "epsilon negative": ("in.jsonl", None, ["--epsilon=-1"], 2, "epsilon must be a finite number above 0"),
    "epsilon NaN": ("in.jsonl", None, ["--epsilon", "nan"], 2, "epsilon must be a finite number above 0, got nan"),
    "epsilon infinite": ("in.jsonl", None, ["--epsilon", "inf"], 2, "epsilon must be a finite number above 0, got inf"),
    "epsilon a word": ("in.jsonl", None, ["--epsilon", "much"], 2, "Invalid value for '--epsilon'"),
    "beta": ("in.jsonl", None, ["--set", "beta=1"], 2, "beta must be a number above 0 and below 1"),
    "threshold": ("in.jsonl", None, ["--set", "threshold=1000"], 2, "use a threshold of at most"),
    "half a budget": ("in.jsonl", None, ["--set", "max_words=10"], 2, "give both or none"),
    "limit": ("in.jsonl", None, ["--limit", "1"], 2, "limit must be an integer of at least 2"),
    "mechanism": ("in.jsonl", None, ["--mechanism", "magic"], 2, "mechanism must be one of"),
    "unknown option": ("in.jsonl", None, ["--colour", "red"], 2, "No such option"),
}


@pytest.mark.parametrize("case", BAD_INPUT, ids=str)
def test_bad_input_gets_one_line_and_leaves_nothing_behind(work, privatize, case):
    name, content, options, code, message = BAD_INPUT[case]
    if content == "folder":
        os.mkdir(name)
    elif content is not None:
        write(name, content)
    epsilon = [] if any("--epsilon" in option for option in options) else ["--epsilon", "5"]
    before = sorted(os.listdir())
    got, out, err = privatize(name, "-o", "out.jsonl", *epsilon, *options, "--quiet")
    assert (got, out) == (code, "")
    assert message in err
    assert err.startswith("dptext: ")
    assert err.count("\n") == 1
    assert SECRET not in err
    assert sorted(os.listdir()) == before


def test_nothing_is_overwritten_without_force(work, privatize):
    write("out.jsonl", "precious")
    code, _, err = privatize("in.jsonl", "-o", "out.jsonl", "--epsilon", 5)
    assert code == 2
    assert "add --force" in err
    assert (work / "out.jsonl").read_text() == "precious"
    assert privatize("in.jsonl", "-o", "out.jsonl", "--epsilon", 5, "--force")[0] == 0
    assert (work / "out.jsonl").read_text() != "precious"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
@pytest.mark.parametrize("stop", ["SIGINT", "SIGTERM"])
def test_an_interrupt_leaves_nothing_and_says_how_to_go_on(work, vectors, stop):
    fifo = work / "slow.jsonl"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "dptext", "privatize", "slow.jsonl", "-o", "out.jsonl", "--epsilon", "5"]
    process = subprocess.Popen([*command, "--vectors", vectors], stderr=subprocess.PIPE, text=True)
    with fifo.open("w") as stream:  # opens when the command reads
        stream.write('{"text": "a"}\n' * 10)
        stream.flush()
        while not any(path.suffix == ".rows" for path in work.iterdir()):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(getattr(signal, stop))
        _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "interrupted. If the output exists, it is complete" in err
    assert "Traceback" not in err
    assert sorted(path.name for path in work.iterdir()) == ["in.jsonl", "slow.jsonl"]


# -- explain ---------------------------------------------------------------------------------------------------


def test_explain_reads_a_statement_and_verifies_the_data(work, privatize, run):
    privatize("in.jsonl", "-o", "out.jsonl", "--epsilon", 5, "-q")
    for name in ("out.jsonl", "out.jsonl.privacy.json"):
        code, out, err = run("explain", name)
        assert (code, err) == (0, "")
        assert "NOT PROTECTED" in out
        assert "out.jsonl: verified" in out
        assert max(map(len, out.splitlines())) <= 100


def test_explain_notices_changed_data(work, privatize, run):
    privatize("in.jsonl", "-o", "out.jsonl", "--epsilon", 5, "-q")
    with open("out.jsonl", "a") as stream:
        stream.write("{}\n")
    code, out, err = run("explain", "out.jsonl")
    assert code == 1
    assert "NOT the data of this statement" in out
    assert "the SHA-256 digest differs" in err


# -- the program -------------------------------------------------------------------------------------------------


def test_version_help_and_usage(run):
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("dptext 0.")
    assert run("privatize", "--help")[0] == 0
    code, _, err = run("privatize")
    assert code == 2
    assert err.count("\n") == 1
    code, _, err = run("nonsense")
    assert code == 2
    assert "No such command" in err


@pytest.mark.slow
def test_python_dash_m_is_the_same_program(work):
    done = subprocess.run([sys.executable, "-m", "dptext", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("dptext 0.")
