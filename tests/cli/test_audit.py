"""Tests of `dptext audit`: a private file, its statement and its guarantee."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

import dptext
from dptext.cli import main
from dptext.io.artifacts import file_digest


@pytest.fixture
def release(tmp_path, monkeypatch, glove):
    """A private file, its statement, and the small vectors it was made with."""
    monkeypatch.chdir(tmp_path)
    rows = (f"{word} {' '.join(f'{x:.5f}' for x in glove[word])}" for word in glove.words[:300])
    (tmp_path / "small.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    texts = ["the 3 doctors lied to Zebulon", "don't mail me@x.org, ever", "", "...", "a.b"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))

    def make(*options):
        arguments = ["privatize", "in.jsonl", "-o", "out.jsonl", "--vectors", "small.txt", "-q", "--force", *options]
        assert main(arguments) == 0
        return tmp_path / "out.jsonl"

    return make


def change(path, **fields):
    statement_file = path.with_name(path.name + ".privacy.json")
    statement = dptext.PrivacyStatement.from_json(statement_file.read_text())
    statement_file.write_text(dataclasses.replace(statement, **fields).to_json())


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["--epsilon", "5"],
        ["--epsilon", "5", "--set", "document_epsilon=30", "--set", "max_words=3"],
        ["--epsilon", "5", "--set", "unknown=uniform"],
    ],
)
def test_an_honest_release_is_kept(release, run, options):
    out = release(*options)
    code, text, err = run("audit", out)
    assert code == 0, err
    assert "KEPT: the guarantee holds" in text
    assert "NO " not in text
    assert max(map(len, text.splitlines())) <= 100
    code, text, _ = run("audit", out, "--json", "-q")
    assert json.loads(text)["refuted"] is False


def test_a_promise_that_the_parameters_do_not_support_is_refuted(release, run):
    out = release("--epsilon", "5")
    change(out, guarantee=dptext.PureDP(1.0))
    code, text, err = run("audit", out)
    assert code == 3
    assert "NO  the guarantee follows from the parameters" in text
    assert "NOT ABOUT THIS FILE: a check of the file failed" in text
    assert "KEPT" not in text
    assert "refuted" in err
    assert err.count("\n") == 2  # progress and the error


@pytest.mark.parametrize(
    "fields",
    [
        {"assumptions": ()},
        {"exposed": ("the number of documents",)},
        {"condition": "any two documents"},
        {"trust": "central"},
    ],
)
def test_a_statement_that_leaves_something_out_is_refuted(release, run, fields):
    out = release("--epsilon", "5")
    change(out, **fields)
    code, text, _ = run("audit", out, "--word", "the", "--word", "of")
    assert code == 3
    assert f"{next(iter(fields))} differ" in " ".join(text.split())


def test_changed_data_is_refuted(release, run):
    out = release("--epsilon", "5")
    out.write_text(out.read_text() + '{"text": "of the"}\n')
    code, text, _ = run("audit", out)
    assert code == 3
    assert "its SHA-256 DIFFERS" in text


def test_a_word_that_the_mechanism_cannot_have_written_is_refuted(release, run):
    out = release("--epsilon", "5")
    out.write_text('{"text": "the of Zebulon 7"}\n')
    change(out, data_sha256=file_digest(out))
    code, text, err = run("audit", out)
    assert code == 3
    assert "2 words that the mechanism cannot have written" in " ".join(text.split())
    assert "Do not rely on this release" in text
    assert "Zebulon" not in text + err


def test_other_vectors_are_noticed(release, run, tmp_path):
    out = release("--epsilon", "5")
    lines = (tmp_path / "small.txt").read_text().splitlines()
    (tmp_path / "small.txt").write_text("\n".join(lines[:-1]) + "\n")
    code, _, err = run("audit", out)
    assert code == 1
    assert "fingerprint differs" in err
    (tmp_path / "small.txt").unlink()
    assert run("audit", out)[0] == 4
    (tmp_path / "moved.txt").write_text("\n".join(lines) + "\n")
    assert run("audit", out, "--vectors", "moved.txt")[0] == 0


# -- pipes and devices: reading one may never end -------------------------------------------------------------------


def audited(arguments):
    """In a process of its own, which is ended where it waits for a writer."""
    code = "import sys; from dptext.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, "audit", *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
@pytest.mark.parametrize("change_kind", ["vectors", "data", "statement", "renamed statement"])
def test_a_pipe_without_a_writer_is_refused_at_once(release, tmp_path, change_kind):
    out = release("--epsilon", "5")
    statement_file = out.with_name(out.name + ".privacy.json")
    if change_kind == "vectors":
        statement = dptext.PrivacyStatement.from_json(statement_file.read_text())
        change(out, parameters={**statement.parameters, "vectors": "small.txt"})
    named = {
        "vectors": tmp_path / "small.txt",
        "data": out,
        "statement": statement_file,
        "renamed statement": tmp_path / "other.json",
    }[change_kind]
    named.unlink(missing_ok=True)
    os.mkfifo(named)
    done = audited([named if change_kind == "renamed statement" else out])
    assert done.returncode in (1, 4)
    assert "a pipe or a device" in done.stderr
    assert done.stderr.count("\n") <= 2
