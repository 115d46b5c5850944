"""``dptext privatize`` on corpora: folders, pipes, bad rows, interruptions, ledgers, in a shell as a user has it."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dptext
from dptext.cli import main
from dptext.io.artifacts import file_digest
from stopping import held

MARKER = "qsecretq"
BIG = 4_000
LONG = "z" * 600  # rows with such a word are several blocks of a million characters, and few words to replace


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, glove):
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    dptext.save_vectors(dptext.load_vectors(glove, limit=500), path)
    return str(path)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("in.jsonl", 6)
    return tmp_path


def write(name, count, start=0, word=""):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as stream:
        for n in range(start, start + count):
            text = f"the man of {MARKER} said that {n} {word}".strip()
            stream.write(json.dumps({"text": text, "id": n, "author": f"a{n % 2}"}) + "\n")


def read(name):
    with open(name) as stream:
        return [json.loads(line) for line in stream]


@pytest.fixture
def privatize(capsys, vectors):
    def call(*arguments):
        options = ["--vectors", vectors, "--epsilon", "4"]
        code = main(["privatize", *map(str, arguments), *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


# -- many files -----------------------------------------------------------------------------------------------


def test_a_folder_goes_to_a_folder_file_by_file(work, privatize):
    write("texts/a.jsonl", 3)
    write("texts/deep/b.jsonl", 2, start=10)
    (work / "texts" / "notes.docx").write_text(MARKER)
    code, _, err = privatize("texts", "-o", "private", "--keep", "id!")
    assert code == 0
    assert [row["id"] for row in read("private/a.jsonl")] == [0, 1, 2]
    assert [row["id"] for row in read("private/deep/b.jsonl")] == [10, 11]
    assert os.path.exists("private/deep/b.jsonl.privacy.json")
    assert not os.path.exists("private/notes.docx")
    assert err.count("Wrote") == 2
    code, _, err = privatize("texts", "-o", "private")
    assert code == 2
    assert "is there already" in err
    os.remove("private/a.jsonl")
    os.remove("private/a.jsonl.privacy.json")
    before = file_digest("private/deep/b.jsonl")
    code, _, err = privatize("texts", "-o", "private", "--keep", "id!", "--resume")
    assert code == 0
    assert "deep/b.jsonl exists already and is left unchanged" in err
    assert file_digest("private/deep/b.jsonl") == before
    assert len(read("private/a.jsonl")) == 3


# -- pipes ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_standard_input_to_standard_output(work, vectors):
    command = [sys.executable, "-m", "dptext", "privatize", "-", "-o", "-", "--format", ".jsonl", "--keep", "id!"]
    options = ["--statement", "s.json", "--vectors", vectors, "--epsilon", "4", "--seed", "3"]
    with open("in.jsonl", "rb") as stream:
        done = subprocess.run([*command, *options], stdin=stream, capture_output=True, check=True)
    rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert [row["id"] for row in rows] == list(range(6))
    assert main(["privatize", "in.jsonl", "-o", "out.jsonl", "--keep", "id!", "-q", *options[2:]]) == 0
    assert done.stdout == (work / "out.jsonl").read_bytes()
    statement = dptext.PrivacyStatement.from_json((work / "s.json").read_text())
    assert statement.data_sha256 == file_digest("out.jsonl")


# -- bad rows, unknown words ----------------------------------------------------------------------------------


def test_bad_rows_are_told_and_listed(work, privatize):
    with open("in.jsonl", "a") as stream:
        stream.write(f'{{"text": "{MARKER}\n')
    code, _, err = privatize("in.jsonl", "-o", "out.jsonl")
    assert code == 1
    assert "row 7: expected a JSON object" in err
    code, out, err = privatize("in.jsonl", "-o", "out.jsonl", "--on-error", "skip", "--json")
    assert code == 0
    assert "Skipped 1 unreadable rows; they are listed in out.jsonl.rejects.jsonl" in err
    assert json.loads(out)["skipped"] == 1
    assert [row["row"] for row in read("out.jsonl.rejects.jsonl")] == [7]
    assert MARKER not in err + (work / "out.jsonl.rejects.jsonl").read_text()


# -- interruptions --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
@pytest.mark.parametrize("processes", ["1", "2"])
def test_an_interrupted_run_says_how_to_go_on_and_does(work, vectors, processes):
    write("big.jsonl", BIG, word=LONG)
    command = [sys.executable, "-m", "dptext", "privatize", "big.jsonl", "-o", "out.jsonl", "--seed", "1"]
    command += ["--epsilon", "4", "--vectors", vectors, "--keep", "id!", "--processes", processes]
    with held(*command[3:]) as process:
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted" in err
    assert "rows are done and kept: run the same command with --resume to continue" in err
    assert "Traceback" not in err
    assert not os.path.exists("out.jsonl")
    assert oct(os.stat(".out.jsonl.job").st_mode & 0o777) == "0o600"
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "a run of 'out.jsonl' was interrupted" in refused.stderr
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0
    assert re.search(r"^Resumed after [1-9][0-9,]* documents\.$", done.stderr, re.MULTILINE)
    assert [row["id"] for row in read("out.jsonl")] == list(range(BIG))
    assert not [name for name in os.listdir() if name.startswith(".")]


def stopped_at(monkeypatch, name):
    """The run stops as it renames something to this."""
    rename = Path.replace

    def replace(path, target):
        if Path(target).name == name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", replace)


def test_a_run_that_stopped_as_it_ended_is_found_by_its_rerun(work, privatize, monkeypatch):
    with monkeypatch.context() as patch:
        stopped_at(patch, "out.jsonl")
        code, _, err = privatize("in.jsonl", "-o", "out.jsonl", "-q")
        assert code == 4
        assert "6 rows are done and kept" in err
    code, _, err = privatize("in.jsonl", "-o", "out.jsonl", "-q")  # the statement is there already
    assert code == 2
    assert "add --resume to continue it, or --force" in err
    assert privatize("in.jsonl", "-o", "out.jsonl", "-q", "--resume")[0] == 0


# -- ledgers --------------------------------------------------------------------------------------------------


def ledger(*arguments):
    return main(["ledger", *map(str, arguments)])


def test_a_ledger_refuses_the_release_that_would_overspend(work, privatize, capsys):
    assert ledger("create", "l.db", "--epsilon", 8) == 0
    for name in ("a.jsonl", "b.jsonl"):
        assert privatize("in.jsonl", "-o", name, "--ledger", "l.db", "-q")[0] == 0
    code, _, err = privatize("in.jsonl", "-o", "c.jsonl", "--ledger", "l.db", "-q")
    assert code == 3
    assert "6 of 6" in err
    assert MARKER not in err
    assert not [name for name in os.listdir() if "c.jsonl" in name]
    write("other.jsonl", 3, start=100)
    assert privatize("other.jsonl", "-o", "d.jsonl", "--ledger", "l.db", "-q")[0] == 0
    write("mixed.jsonl", 3, start=5)
    code, _, err = privatize("mixed.jsonl", "-o", "e.jsonl", "--ledger", "l.db", "-q")
    assert code == 3
    assert "1 of 3" in err


def test_a_ledger_may_go_by_a_column(work, privatize):
    ledger("create", "l.db", "--releases", 1)
    assert privatize("in.jsonl", "-o", "a.jsonl", "--ledger", "l.db", "--user", "author", "-q")[0] == 0
    assert set(read("a.jsonl")[0]) == {"text"}
    write("more.jsonl", 2, start=50)
    code, _, err = privatize("more.jsonl", "-o", "b.jsonl", "--ledger", "l.db", "--user", "author", "-q")
    assert code == 3
    code, _, err = privatize("more.jsonl", "-o", "b.jsonl", "--ledger", "l.db", "-q")
    assert code == 3
    with open("null.jsonl", "w") as stream:
        stream.write('{"text": "the", "author": null}\n')
    code, _, err = privatize("null.jsonl", "-o", "b.jsonl", "--ledger", "l.db", "--user", "author", "-q")
    assert code == 1
    assert "row 1 has no usable 'author'" in err


def test_a_seeded_release_is_none_for_a_ledger(work, privatize):
    ledger("create", "l.db", "--releases", 1)
    code, _, err = privatize("in.jsonl", "-o", "a.jsonl", "--ledger", "l.db", "--seed", 1, "-q")
    assert code == 3
    assert "seed" in err
    assert not [name for name in os.listdir() if "a.jsonl" in name]


@pytest.mark.slow
def test_two_processes_at_the_same_rows_one_wins(work, vectors):
    ledger("create", "l.db", "--releases", 1)
    write("big.jsonl", 3000)
    command = [sys.executable, "-m", "dptext", "privatize", "big.jsonl", "--ledger", "l.db", "--epsilon", "4", "-q"]
    command += ["--vectors", vectors]
    for _ in range(2):
        running = [subprocess.Popen([*command, "-o", f"{n}.jsonl"], stderr=subprocess.PIPE) for n in range(3)]
        codes = sorted(process.communicate() and process.returncode for process in running)
        assert codes == [0, 3, 3]
        (winner,) = [n for n in range(3) if os.path.exists(f"{n}.jsonl")]
        for name in (f"{winner}.jsonl", f"{winner}.jsonl.privacy.json", "l.db"):
            os.remove(name)
        ledger("create", "l.db", "--releases", 1)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 there")
def test_a_killed_run_is_charged_once(work, vectors):
    ledger("create", "l.db", "--releases", 1)
    write("big.jsonl", BIG, word=LONG)
    command = [sys.executable, "-m", "dptext", "privatize", "big.jsonl", "-o", "out.jsonl", "--ledger", "l.db", "-q"]
    command += ["--epsilon", "4", "--vectors", vectors]
    with held(*command[3:]) as process:
        process.kill()
    refused = subprocess.run([*command[:6], "other.jsonl", *command[7:]], capture_output=True, text=True)
    assert refused.returncode == 3
    assert subprocess.run([*command, "--resume"]).returncode == 0
    (release,) = dptext.ledger.ledger.Ledger("l.db").releases()
    assert release.state == "released"


@pytest.mark.slow
def test_a_pipe_that_breaks_leaves_a_statement_for_what_was_sent(work, vectors):
    write("big.jsonl", 20_000)
    command = [sys.executable, "-m", "dptext", "privatize", "big.jsonl", "-o", "-", "--statement", "s.json"]
    process = subprocess.Popen(
        [*command, "--vectors", vectors, "--epsilon", "4", "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() == 4
    assert "the reader of standard output is gone" in err
    assert "rows were sent already" in err
    assert "Traceback" not in err
    assert dptext.PrivacyStatement.from_json((work / "s.json").read_text()).mechanism == "TEM"
