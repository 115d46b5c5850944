"""``dptext privatize``: words and sentences, files, interruptions, ledgers and redaction."""

import csv
import errno
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dptext
from cli.conftest import SECRET, command, names, read_rows, statement_of, write_rows
from dptext.cli import main
from dptext.io.artifacts import file_digest
from dptext.ledger.ledger import Ledger
from stopping import held

BIG = 4_000
LONG = "z" * 600  # rows with such a word are several blocks of a million characters, and few words to replace
on_posix = pytest.mark.skipif(os.name == "nt", reason="signals and pipes of POSIX")


@pytest.fixture
def privatize(run, work, vectors):
    write_rows("in.jsonl", 6)

    def call(*arguments):
        epsilon = [] if any(str(argument).startswith("--epsilon") for argument in arguments) else ["--epsilon", 4]
        return run("privatize", *arguments, "--vectors", vectors, *epsilon)

    return call


# -- files ---------------------------------------------------------------------------------------------------------


def test_privatize_writes_private_texts_and_their_statement(privatize):
    texts = [f"{SECRET} said the war, on 3 May.", "", "mail me@x.org", "don't"]
    Path("in.jsonl").write_text("".join(json.dumps({"text": text, "n": n, "name": SECRET}) + "\n"
                                        for n, text in enumerate(texts)))  # fmt: skip
    code, out, err = privatize("in.jsonl", "-o", "out.jsonl", "--epsilon", 5, "--keep", "n")
    assert (code, out) == (0, "")
    rows = read_rows("out.jsonl")
    assert [row["n"] for row in rows] == [0, 1, 2, 3]
    assert all(set(row) == {"text", "n"} for row in rows)
    assert SECRET not in Path("out.jsonl").read_text().lower()
    assert "<number>" in rows[0]["text"] and rows[2]["text"].endswith("<email>")
    statement = statement_of("out.jsonl")
    assert statement.data_sha256 == file_digest("out.jsonl")
    assert "the column 'n', unchanged" in statement.exposed
    assert (statement.unit, statement.seeded) == ("document", False)
    assert "unit      document" in err and "pure      epsilon at most" in err
    assert names() == ["in.jsonl", "out.jsonl", "out.jsonl.privacy.json"]


def test_a_seed_repeats_a_release_and_is_not_published(privatize):
    for name in ("a.jsonl", "b.jsonl"):
        assert privatize("in.jsonl", "-o", name, "--seed", 918273)[0] == 0
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    assert statement_of("a.jsonl").seeded
    assert "918273" not in Path("a.jsonl.privacy.json").read_text()


BAD_INPUT = [
    # input, its content, options, exit code, part of the message
    ("nothing.jsonl", None, [], 4, "cannot open 'nothing.jsonl'"),
    ("bad.jsonl", "", [], 1, "contains no documents: at least one row"),
    ("bad.txt", f"fine\n{SECRET} ".encode() + b"\xff\n", [], 1, "row 2: expected UTF-8"),
    ("bad.jsonl", f'{{"text": "a"}}\n{{"text": "{SECRET}', [], 1, "row 2: expected a JSON object"),
    ("bad.txt.gz", gzip.compress(b"a\n" * 999)[:-9], [], 1, "ends early"),
    ("bad.csv", f'text\nfine\n"{SECRET}', [], 1, "row 2 (line 3): the row has an unclosed quote"),
    ("bad.jsonl", f'{{"body": "{SECRET}"}}\n', [], 1, "row 1: expected a column 'text'"),
    ("bad.jsonl", '{"text": "a"}\n', ["--keep", "label"], 1, "row 1: expected a column 'label'"),
    ("bad.jsonl", '{"text": 12}\n', [], 1, "row 1: expected a string in 'text', the value is of type int"),
    ("bad.jsonl", '{"text": "a"}\n' * 3000 + "{", [], 1, "row 3001"),
    ("bad.docx", SECRET, [], 2, "ends in .txt, .jsonl, .csv, .tsv"),
    ("in.jsonl", None, ["--epsilon", "0"], 2, "epsilon must be a finite number above 0, got 0"),
    ("in.jsonl", None, ["--epsilon", "inf"], 2, "epsilon must be a finite number above 0, got inf"),
    ("in.jsonl", None, ["--epsilon", "much"], 2, "Invalid value for '--epsilon'"),
    ("in.jsonl", None, ["--set", "beta=1"], 2, "beta must be a number above 0 and below 1"),
    ("in.jsonl", None, ["--set", "max_words=10"], 2, "document_epsilon and max_words must be passed together"),
    ("in.jsonl", None, ["--limit", "1"], 2, "limit must be an integer of at least 2"),
    ("in.jsonl", None, ["--mechanism", "magic"], 2, "mechanism must be one of"),
    ("in.jsonl", None, ["--colour", "red"], 2, "No such option"),
]


def test_bad_input_gets_one_line_and_leaves_nothing_behind(privatize):
    for name, content, options, code, message in BAD_INPUT:
        if content is not None:
            Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        before = names()
        result, out, err = privatize(name, "-o", "out.jsonl", *options, "--quiet")
        assert (result, out, names()) == (code, "", before), (name, options, err)
        assert message in err and err.startswith("dptext: ") and err.count("\n") == 1, (name, options, err)


def test_a_pipe_and_a_folder_go_to_one_file(privatize, monkeypatch):
    write_rows("texts/a.jsonl", 3)
    write_rows("texts/deep/b.jsonl", 2, start=10)
    Path("texts/notes.docx").write_text(SECRET)
    assert privatize("texts", "-o", "private.jsonl", "--keep", "id!", "-q")[0] == 0
    assert [row["id"] for row in read_rows("private.jsonl")] == [0, 1, 2, 10, 11]
    with open("in.jsonl") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert privatize("-", "--format", ".jsonl", "-o", "out.jsonl", "-q")[0] == 0
    assert len(read_rows("out.jsonl")) == 6


def test_nothing_is_overwritten_without_force(privatize):
    Path("out.jsonl").write_text("precious")
    code, _, err = privatize("in.jsonl", "-o", "out.jsonl")
    assert (code, "add --force" in err, Path("out.jsonl").read_text()) == (2, True, "precious")
    assert privatize("in.jsonl", "-o", "out.jsonl", "--force")[0] == 0
    assert Path("out.jsonl").read_text() != "precious"


def test_unreadable_rows_are_counted_and_listed_without_their_text(privatize):
    with open("in.jsonl", "a") as stream:
        stream.write(f'{{"text": "{SECRET}\n')
    code, _, err = privatize("in.jsonl", "-o", "out.jsonl")
    assert (code, "row 7: expected a JSON object" in err) == (1, True)
    code, out, err = privatize("in.jsonl", "-o", "out.jsonl", "--on-error", "skip", "--json")
    assert (code, json.loads(out)["skipped"]) == (0, 1)
    assert "no author: 1 (for you alone; out.jsonl.rejects.jsonl lists them)" in err
    assert [row["row"] for row in read_rows("out.jsonl.rejects.jsonl")] == [7]
    assert SECRET not in Path("out.jsonl.rejects.jsonl").read_text()


# -- interruptions -------------------------------------------------------------------------------------------------


@on_posix
@pytest.mark.slow
def test_a_terminated_run_without_finished_rows_leaves_nothing(privatize, vectors):
    os.mkfifo("slow.jsonl")
    arguments = command("privatize", "slow.jsonl", "-o", "out.jsonl", "--epsilon", 5, "--vectors", vectors)
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    with open("slow.jsonl", "w") as stream:  # opens when the command reads
        stream.write('{"text": "a"}\n' * 10)
        stream.flush()
        while not any(name.endswith(".rows") for name in names()):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=600)
    assert (process.returncode, names()) == (130, ["in.jsonl", "slow.jsonl"])
    assert "interrupted. If the output exists, it is complete" in err and "Traceback" not in err


@on_posix
@pytest.mark.slow
def test_an_interrupted_run_is_resumed_and_a_killed_one_is_charged_once(privatize, vectors):
    assert main(["ledger", "create", "l.db", "--releases", "1"]) == 0
    write_rows("big.jsonl", BIG, word=LONG)
    usual = ["--ledger", "l.db", "--epsilon", "4", "--vectors", vectors, "--keep", "id!", "--processes", "2"]
    arguments = ["privatize", "big.jsonl", "-o", "out.jsonl", *usual]
    with held(*arguments) as process:
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert (process.returncode, "Traceback" in err, Path("out.jsonl").exists()) == (130, False, False)
    assert "rows are done and kept: run the same command with --resume to continue" in err
    assert oct(os.stat(".out.jsonl.job").st_mode & 0o777) == "0o600"
    with held(*arguments, "--resume", after=2) as process:
        process.kill()
    refused = subprocess.run(command(*arguments), capture_output=True, text=True)
    assert (refused.returncode, "a run of 'out.jsonl' was interrupted" in refused.stderr) == (2, True)
    another = subprocess.run(command(*arguments[:3], "other.jsonl", *usual, "-q"), capture_output=True, text=True)
    assert another.returncode == 3  # the killed run stays charged
    done = subprocess.run(command(*arguments, "--resume"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Resumed after [1-9][0-9,]* documents\.$", done.stderr, re.MULTILINE)
    assert [row["id"] for row in read_rows("out.jsonl")] == list(range(BIG))
    assert not [name for name in names() if name.startswith(".")]
    assert [release.state for release in Ledger("l.db").releases()] == ["released"]


def test_a_run_that_fails_at_its_last_rename_is_completed_by_resume(privatize, monkeypatch):
    rename = Path.replace

    def replace(path, target):
        if Path(target).name == "out.jsonl":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        code, _, err = privatize("in.jsonl", "-o", "out.jsonl", "-q")
    assert (code, "6 rows are done and kept" in err) == (4, True)
    code, _, err = privatize("in.jsonl", "-o", "out.jsonl", "-q")  # the statement exists already
    assert (code, "add --resume to continue it, or --force" in err) == (2, True)
    assert privatize("in.jsonl", "-o", "out.jsonl", "-q", "--resume")[0] == 0


# -- ledgers -------------------------------------------------------------------------------------------------------


def test_a_ledger_charges_texts_or_a_column_and_refuses_to_overspend(privatize):
    def release(source, out, ledger, *options):
        code, _, err = privatize(source, "-o", out, "--ledger", ledger, "-q", *options)
        assert (code == 0) == Path(out).exists() == bool([name for name in names() if out in name])
        return code, err

    Ledger.create("texts.db", epsilon=8)
    assert [release("in.jsonl", name, "texts.db")[0] for name in ("a.jsonl", "b.jsonl")] == [0, 0]
    code, err = release("in.jsonl", "c.jsonl", "texts.db")
    assert (code, "6 of 6" in err) == (3, True)
    write_rows("other.jsonl", 3, start=100)
    assert release("other.jsonl", "d.jsonl", "texts.db")[0] == 0
    write_rows("mixed.jsonl", 3, start=5)
    code, err = release("mixed.jsonl", "e.jsonl", "texts.db")
    assert (code, "1 of 3" in err) == (3, True)
    Ledger.create("authors.db", releases=1)
    by_author = ("authors.db", "--user", "author")
    code, err = release("in.jsonl", "f.jsonl", *by_author, "--seed", 1)
    assert (code, "seed" in err) == (3, True)
    assert release("in.jsonl", "g.jsonl", *by_author)[0] == 0
    assert set(read_rows("g.jsonl")[0]) == {"text"}
    write_rows("more.jsonl", 2, start=50)
    assert release("more.jsonl", "h.jsonl", *by_author)[0] == release("more.jsonl", "h.jsonl", "authors.db")[0] == 3
    Path("null.jsonl").write_text('{"text": "the", "author": null}\n')
    code, err = release("null.jsonl", "i.jsonl", *by_author)
    assert (code, "1 of 1 rows has no usable value in the column 'author'" in err) == (1, True)


@pytest.mark.slow
def test_one_of_three_simultaneous_runs_gets_the_last_release(privatize, vectors):
    Ledger.create("l.db", releases=1)
    write_rows("big.jsonl", 3000)
    usual = ("--ledger", "l.db", "--epsilon", "4", "-q", "--vectors", vectors)
    running = [subprocess.Popen(command("privatize", "big.jsonl", "-o", f"{n}.jsonl", *usual)) for n in range(3)]
    assert sorted(process.wait() for process in running) == [0, 3, 3]
    assert sum(Path(f"{n}.jsonl").exists() for n in range(3)) == 1


# -- sentences -----------------------------------------------------------------------------------------------------

PUBLIC = [f"the {noun} was {kind}" for noun in ("tea", "room", "staff") for kind in ("good", "bad", "late", "new")]
TEXTS = ["The tea was late. The staff were good.", "", f"{SECRET}!", "A bad room? A bad room. A bad room!"]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    place = tmp_path_factory.mktemp("public") / "bank"
    words = sorted({word for text in PUBLIC for word in text.split()})
    vectors = dptext.load_vectors((words, np.random.default_rng(2).normal(size=(len(words), 6))))
    dptext.TextBank(PUBLIC, encoder=dptext.MeanOfWords(vectors), name="hotels", cache=False).save(place)
    return place


def write_texts(name):
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("".join(json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(TEXTS)))


def sentences_of_bank(text):
    """Return the number of sentences of the bank in a text that holds nothing else."""
    count = 0
    while text:
        sentence = next(public for public in PUBLIC if text.startswith(public))
        text, count = text.removeprefix(sentence).removeprefix(" "), count + 1
    return count


@pytest.mark.parametrize(
    ("options", "sentences", "epsilon", "message"),
    [
        ([], [2, 0, 1, 3], 24.0, "document  8 times its number of sentences, which is exposed"),
        (["--max-sentences", "2"], [2, 0, 1, 2], 16.0, "document  at most 16, for 2 sentences"),
        (["--unit", "document"], [1, 1, 1, 1], 8.0, "document  replaced by one text of the bank"),
        (["--unit", "document", "--max-sentences", "2"], [2, 2, 2, 2], 8.0, "document  always 2 sentences, 4 each"),
    ],
)
def test_texts_are_replaced_by_sentences_of_the_bank(work, run, bank, options, sentences, epsilon, message):
    write_texts("in.jsonl")
    usual = ("--mechanism", "bank", "--bank", bank, "--epsilon", 8, "--set", "size=3")
    code, out, err = run("privatize", "in.jsonl", "-o", "out.jsonl", "--keep", "n", *usual, *options)
    assert (code, out) == (0, "")
    rows = read_rows("out.jsonl")
    assert [sentences_of_bank(row["text"]) for row in rows] == sentences
    assert [row["n"] for row in rows] == [0, 1, 2, 3]
    statement = statement_of("out.jsonl")
    assert (statement.guarantee, statement.unit) == (dptext.PureDP(epsilon), "document")
    assert (statement.parameters["size"], statement.parameters["bank"]) == (3, "hotels")
    before = err[: err.index("Wrote ")]
    assert before.startswith("BankRewriter on the bank 'hotels' (12 public texts)\n  unit      ")
    assert message in before and "(chance level 0.34%)" in before
    assert max(map(len, before.splitlines())) <= 80


def test_a_ledger_charges_the_largest_number_of_sentences(work, run, bank):
    write_texts("in.jsonl")
    Ledger.create("book", epsilon=30.0)
    usual = ("--mechanism", "bank", "--bank", bank, "--epsilon", 8, "--ledger", "book")
    code, _, err = run("privatize", "in.jsonl", "-o", "out.jsonl", *usual)
    assert (code, "limit the replaced parts" in err) == (3, True)
    assert run("privatize", "in.jsonl", "-o", "out.jsonl", *usual, "--max-sentences", "3")[0] == 0
    assert Ledger("book").left(TEXTS[0]).spent == 24.0
    code, _, err = run("privatize", "in.jsonl", "-o", "more.jsonl", *usual, "--unit", "document")
    assert (code, "would be overspent" in err) == (3, True)


def test_a_bank_of_the_private_file_is_refused(work, run):
    write_texts("notes.jsonl")
    write_texts("texts/more.jsonl")
    assert run("bank", "notes.jsonl", "-o", "own", "--pool-unit", "sentence", "--encoder", "words", "-q") == (0, "", "")
    usual = "--mechanism", "bank", "--bank", "own", "--epsilon", "8", "-q"
    for source in ("notes.jsonl", "texts"):  # the same bytes
        code, _, err = run("privatize", source, "-o", "out.jsonl", *usual)
        assert (code, err.count("\n"), "the bank contains the texts of" in err) == (2, 1, True)
        assert not Path("out.jsonl").exists()


# -- redaction -----------------------------------------------------------------------------------------------------


def test_redaction_uses_placeholders_and_keeps_the_list_private(run, work):
    words = ["the", "man", "of", "said", "that", "mr", "call", "lee"]
    dptext.save_vectors(dptext.load_vectors((words, [[float(n), 0.0] for n in range(8)])), work / "small.txt")
    texts = [f"Mr. {name}, call 212-555-{1000 + n} the man of {SECRET}" for n, name in enumerate(["Lee", "Ray"])]
    with open("in.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([["text"], *([text] for text in texts * 20)])
    Path("list.txt").write_text(f"{SECRET}\n")
    usual = ("privatize", "in.csv", "-o", "out.csv", "--vectors", "small.txt", "--epsilon", 3, "-q", "--force")
    assert run(*usual, "--redact", "--redact-list", "list.txt")[0] == 0
    out = Path("out.csv").read_text()
    assert out.count("<phone>") == out.count("<listed>") == 40
    statement = Path("out.csv.privacy.json").read_text()
    assert SECRET not in statement and "after redaction" in statement
    assert run("audit", "out.csv", "--samples", 200)[0] == 0
    assert run("attack", "linkage", "in.csv", "out.csv")[0] == 1
    assert run("attack", "linkage", "in.csv", "out.csv", "--redact-list", "list.txt")[0] == 0
    Path("out.csv").write_text(f"{SECRET}\n")  # with --force as well: it may be the only copy
    code, _, err = run(*usual, "--redact-list", "out.csv")
    assert (code, "is the redaction list" in err, Path("out.csv").read_text()) == (2, True, f"{SECRET}\n")


def test_the_input_is_opened_once_and_few_functions_hold_a_row():
    tool = Path(__file__).parents[2] / "tools" / "trace_row.py"
    done = subprocess.run([sys.executable, tool], capture_output=True, text=True, check=True)
    functions, modules, opens = map(int, re.findall(r"\d+", done.stdout.splitlines()[-1]))
    assert functions <= 12 and modules <= 6 and opens == 1
