"""Tests of output paths: an invalid one is refused before a row is read, and all files stay unchanged."""

import json
import os
from pathlib import Path

import pytest

from dptext.io.documents import DocumentReader
from dptext.ledger.ledger import Ledger

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, pipes and devices of POSIX")

ENDING = {"privatize": ".jsonl", "encode": ".parquet", "embed": "", "report": ".html"}
FILES = {name: ending for name, ending in ENDING.items() if ending}


@pytest.fixture
def vectors(tmp_path, glove):
    rows = (f"{word} {' '.join(f'{x:.5f}' for x in glove[word])}" for word in glove.words[:50])
    (tmp_path / "small.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return "small.txt"


@pytest.fixture
def write(run, vectors, tmp_path, monkeypatch):
    """A command that is to write to a place, and reads nothing."""
    monkeypatch.chdir(tmp_path)
    rows = [{"text": "the man of the city", "author": f"a{n}"} for n in range(3)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("privatize", "in.jsonl", "-o", "private.jsonl", "--epsilon", 4, "--vectors", vectors, "-q")[0] == 0
    Ledger.create("my.ledger", epsilon=10)

    def no_reading(*_, **__):
        raise AssertionError("rows are read")

    monkeypatch.setattr(DocumentReader, "batches", no_reading)
    monkeypatch.setattr("dptext.reports.page.report", no_reading)

    def call(command, target, *further):
        commands = {
            "privatize": ("in.jsonl", "-o", target, "--epsilon", 4, "--vectors", vectors, "--force"),
            "encode": ("in.jsonl", "-o", target, "--epsilon", 4, "--encoder", vectors, "--force"),
            "embed": ("in.jsonl", "-o", target, "--epsilon", 4, "--vectors", vectors, "--force", "--user", "author"),
            "report": ("private.jsonl", "-o", target, "--original", "in.jsonl", "--force"),
        }[command]
        before = tree(tmp_path)
        code, out, err = run(command, *commands, *further, "-q")
        assert (out, err.count("\n"), tree(tmp_path)) == ("", 1, before), err
        return code, err

    return call


def tree(folder):
    return {
        os.fspath(path): path.read_bytes() if path.is_file() and not path.is_symlink() else path.lstat().st_mode
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("command", ENDING)
@pytest.mark.parametrize("leads", ["device", "nowhere", "victim"])
def test_a_link_is_neither_followed_nor_replaced(write, command, leads):
    target = Path(f"out{ENDING[command]}")
    Path("victim").mkdir() if command == "embed" else Path("victim").write_text("years of work")
    target.symlink_to({"device": os.devnull, "nowhere": "nothing", "victim": "victim"}[leads])
    code, err = write(command, target)
    assert code == 2
    assert "is a link" in err


@pytest.mark.parametrize("command", FILES)
def test_what_is_no_regular_file_is_refused(write, command):
    ending = FILES[command]
    os.mkfifo(f"pipe{ending}")
    Path(f"folder{ending}").mkdir()
    assert write(command, f"pipe{ending}") == (
        2,
        f"dptext: 'pipe{ending}' is a pipe, not a regular file: choose another name, or move it away\n",
    )
    if command in ("privatize", "encode"):  # a folder gets a file for each input
        Path(f"folder{ending}/in{ending}").mkdir()
    code, err = write(command, f"folder{ending}")
    assert code == 2
    assert "is a folder: name a file in it" in err


@pytest.mark.parametrize("command", ["privatize", "encode"])
@pytest.mark.parametrize("sibling", ["{}", "{}.privacy.json", "{}.rejects.jsonl", ".{}.rows", ".{}.job", ".{}.made"])
def test_neither_ledger_nor_input_is_overwritten(write, command, sibling):
    out = f"out{ENDING[command]}"
    Path("my.ledger").rename(sibling.format(out))
    code, err = write(command, out, "--ledger", sibling.format(out))
    assert code == 2
    assert "is the same file as the ledger: choose another name" in err
    Path(sibling.format(out)).unlink()
    Path("in.jsonl").rename(sibling.format(out))
    Path("in.jsonl").symlink_to(sibling.format(out))
    code, err = write(command, out)
    assert code == 2
    assert "is the same file as IN: choose another name" in err


def test_an_output_is_no_other_input(write, vectors):
    Path("more").mkdir()
    Path("in.jsonl").rename("more/in.jsonl")
    Path("out").mkdir()
    Path("out/in.jsonl").symlink_to("../in.jsonl")
    Path("in.jsonl").write_text('{"text": "b"}\n')
    code, err = write("privatize", "out", "more/in.jsonl")
    assert code == 2, err
