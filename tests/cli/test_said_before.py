"""No default of a command makes what its own report would call unprotected without having said so before."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import dptext
from dptext.cli import main, outputs
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import UNBOUNDED, Strength, strength_in_brief
from dptext.words.registry import MECHANISMS

TEXTS = [
    f"the {noun} was {quality}, they said"
    for noun in ("tea", "room", "staff")
    for quality in ("good", "bad", "late", "dear")
]
WORDS = sorted({word for text in TEXTS for word in text.replace(",", "").split()})


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    """Vectors and a bank."""
    folder = tmp_path_factory.mktemp("public")
    vectors = dptext.load_vectors((WORDS, np.random.default_rng(2).normal(size=(len(WORDS), 6))))
    dptext.save_vectors(vectors, folder / "small.txt")
    dptext.TextBank(TEXTS, encoder=dptext.MeanOfWords(vectors), name="hotels", cache=False).save(folder / "bank")
    return folder


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path / "cache"))
    with open("in.jsonl", "w") as stream:
        for number in range(60):
            row = {"text": TEXTS[number % 12], "author": f"a{number % 7}", "stars": number % 5, "topic": number % 2}
            stream.write(json.dumps(row) + "\n")
    return tmp_path


WAYS = {
    **{
        f"privatize {name}": ["privatize", "--mechanism", name, "--vectors", "{public}/small.txt"]
        for name in MECHANISMS
    },
    "privatize a document": [
        "privatize",
        "--vectors",
        "{public}/small.txt",
        "--set",
        "document_epsilon={epsilon}",
        "--set",
        "max_words=3",
    ],
    "privatize pure": ["privatize", "--vectors", "{public}/small.txt", "--set", "pure_epsilon={epsilon}"],
    "bank": ["privatize", "--mechanism", "bank", "--bank", "{public}/bank", "--set", "size=1"],
    "bank, a document": [
        "privatize",
        "--mechanism",
        "bank",
        "--bank",
        "{public}/bank",
        "--unit",
        "document",
        "--set",
        "size=1",
    ],
    "encode": ["encode", "--encoder", "{public}/small.txt"],
    "embed": ["embed", "--user", "author", "--delta", "1e-6", "--vectors", "{public}/small.txt"],
    "synthesize": ["synthesize", "--user", "author", "--public", "pool.txt", "--features", "words", "-n", "6"],
}


def unsaid(statement, err):
    """Return whether a weak guarantee was not named as weak."""
    return strength_in_brief(statement)[1] is False and not any(
        phrase in " ".join(err.split()) for phrase in (Strength.TOO_LARGE.value, UNBOUNDED)
    )


@pytest.mark.parametrize("epsilon", [0.4, 2.0, 8.0, 11.0])
@pytest.mark.parametrize("way", WAYS)
def test_what_does_not_protect_was_called_so_before_it_was_written(work, public, capsys, way, epsilon):
    name, *options = WAYS[way]
    Path("pool.txt").write_text("\n".join(f"{text} again" for text in TEXTS) + "\n")
    out = {"encode": "out.parquet", "embed": "shared"}.get(name, "out.jsonl")
    options = [option.format(epsilon=epsilon, public=public) for option in options]
    code = main([name, "in.jsonl", "-o", out, "--epsilon", str(epsilon), "--seed", "1", *options])
    err = capsys.readouterr().err
    assert code == 0, err
    statements = [*Path().rglob("*privacy.json")]
    assert statements
    before = err.split("\nWrote ")[0]
    for path in statements:
        assert not unsaid(PrivacyStatement.from_json(path.read_text()), before)
    assert max(map(len, before.splitlines())) <= 80 or str(public) in before


# -- a terminal -----------------------------------------------------------------------------------------------------


@pytest.fixture
def at_terminal(monkeypatch, public):
    """Run a command on a terminal, with answers to its questions."""
    questions = []

    def call(answer, *arguments, epsilon=11):
        def answered(question, *, yes, quiet):
            if yes or quiet:
                return True
            questions.append(question)
            return answer

        monkeypatch.setattr(outputs, "confirm", answered)
        del questions[:]
        vectors = str(public / "small.txt")
        options = {"encode": ["--encoder", vectors], "synthesize": []}.get(arguments[0], ["--vectors", vectors])
        return main([*map(str, arguments), "--epsilon", str(epsilon), *options]), len(questions)

    return call


def test_a_no_writes_nothing(work, at_terminal, capsys):
    assert at_terminal(False, "privatize", "in.jsonl", "-o", "out.jsonl") == (1, 1)
    assert "Nothing was written." in capsys.readouterr().err
    assert at_terminal(False, "encode", "in.jsonl", "-o", "out.parquet") == (1, 1)
    assert at_terminal(False, "embed", "in.jsonl", "-o", "shared", "--user", "author") == (1, 1)
    Path("pool.txt").write_text("\n".join(TEXTS) + "\n")
    of_corpus = ("--user", "author", "--public", "pool.txt", "--features", "words", "-n", 6)
    assert at_terminal(False, "synthesize", "in.jsonl", "-o", "out.jsonl", *of_corpus) == (1, 1)
    assert {name for name in os.listdir() if not name.startswith("cache")} == {"in.jsonl", "pool.txt"}


def test_what_protects_is_not_asked_about(work, at_terminal):
    options = ("--set", "document_epsilon=2", "--set", "max_words=3")
    assert at_terminal(False, "privatize", "in.jsonl", "-o", "out.jsonl", *options, epsilon=0.5) == (0, 0)
    assert at_terminal(False, "encode", "in.jsonl", "-o", "out.parquet", epsilon=2) == (0, 0)
    assert at_terminal(False, "embed", "in.jsonl", "-o", "shared", "--user", "author", epsilon=2) == (0, 0)


def test_what_a_ledger_does_not_bound_is_said_before_it_charges(work, public, capsys):
    vectors = ("--vectors", str(public / "small.txt"), "--yes")
    for name in ("near", "pure"):
        assert main(["ledger", "create", name, "--epsilon", "9"]) == 0
    assert main(["privatize", "in.jsonl", "-o", "a.jsonl", "--epsilon", "1", "--ledger", "near", *vectors]) == 0
    assert "not the total loss of a text or a person" in " ".join(capsys.readouterr().err.split())
    pure = ("--epsilon", "1", "--mechanism", "subsetselection", "--set", "max_words=6", "--ledger", "pure")
    assert main(["privatize", "in.jsonl", "-o", "b.jsonl", *pure, *vectors]) == 0
    assert "loses in all" not in capsys.readouterr().err


def test_a_run_that_goes_on_was_decided_about(work, at_terminal, monkeypatch):
    assert at_terminal(True, "privatize", "in.jsonl", "-o", "out.jsonl", "--keep", "author!") == (0, 1)
    # neither question nor refusal: both were answered when it began
    assert at_terminal(False, "privatize", "in.jsonl", "-o", "out.jsonl", "--keep", "author", "--resume") == (0, 0)


def test_how_much_came_out_as_it_was_is_for_the_owner(work, public, capsys):
    certain = ["--epsilon", "60", "--set", "beta=1e-8", "--seed", "1"]  # a seed: a word in a hundred million moves
    assert main(["privatize", "in.jsonl", "-o", "o.jsonl", *certain, "--vectors", str(public / "small.txt")]) == 0
    captured = capsys.readouterr()
    assert "360 of 360 words and 60 of 60 texts are unchanged." in captured.err
    assert "Do not share the unchanged texts" in " ".join(captured.err.split())
    assert not captured.out
    for written in (path.read_text() for path in Path().glob("o.*")):
        assert "came out" not in written
        assert not re.search(r"\b360\b", written)  # as a number: the name of a release is of random digits


# -- kept columns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["privatize", "encode"])
def test_a_kept_column_that_looks_like_an_identifier_is_refused(work, at_terminal, capsys, command):
    out = "out.parquet"
    assert at_terminal(True, command, "in.jsonl", "-o", out, "--keep", "author", "--keep", "stars") == (2, 0)
    err = capsys.readouterr().err
    assert "'author' (its name suggests that it identifies a person)" in err
    assert "'stars'" not in err
    assert "--keep 'author!'" in err
    assert err.count("\n") == 1
    assert os.listdir() == ["in.jsonl"]
    assert at_terminal(True, command, "in.jsonl", "-o", out, "--keep", "author!", "--keep", "stars")[0] == 0
    assert at_terminal(True, command, "in.jsonl", "-o", out, "--keep", "author!", "--force")[0] == 0
    statement = PrivacyStatement.from_json(Path("out.parquet.privacy.json").read_text())
    assert "the column 'author', unchanged" in statement.exposed


# -- no epsilon, pure epsilon ---------------------------------------------------------------------------------------


# -- people with several texts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["privatize", "encode"])
def test_a_promise_is_one_for_each_text_and_the_owner_reads_what_it_is_for_a_person(work, at_terminal, capsys, command):
    out = "out.parquet"
    assert at_terminal(True, command, "in.jsonl", "-o", out, "--user", "author", "--json")[0] == 0
    captured = capsys.readouterr()
    before, _, after = " ".join(captured.err.split()).partition("Wrote ")
    assert "the guarantee is per text, and the losses of one 'author''s texts add up" in before
    assert "For you alone (it is in no statement): " in after
    assert "The 'author' with the most texts has 9. The guarantee for all of them together: epsilon at most" in after
    assert Strength.TOO_LARGE.value in after.partition("together")[2]
    assert "most texts" not in captured.out + "".join(path.read_text() for path in Path().glob("out.*.json"))
    assert sorted(os.listdir()) == ["in.jsonl", "out.parquet", "out.parquet.privacy.json"]


def test_the_texts_of_a_person_in_several_files_add_up(work, at_terminal, capsys):
    lines = Path("in.jsonl").read_text().splitlines(keepends=True)
    for name, part in (("a", lines[:30]), ("b", lines[30:])):
        Path(f"{name}.jsonl").write_text("".join(part))
    command = ("privatize", "a.jsonl", "b.jsonl", "-o", "out/", "--user", "author")
    assert at_terminal(True, *command)[0] == 0
    err = " ".join(capsys.readouterr().err.split())
    assert err.count("most texts has 9.") == err.count("with the most texts") == 1
    Path("out/b.jsonl").unlink()
    Path("out/b.jsonl.privacy.json").unlink()
    assert at_terminal(True, *command, "--resume")[0] == 0
    assert "most texts has 5, in the files of this run (1 processed before is not counted)" in " ".join(
        capsys.readouterr().err.split()
    )
    assert at_terminal(True, *command, "--resume")[0] == 0
    assert "were not counted, because an earlier run processed them." in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("wrong", [["--text", "txet"], ["--keep", "strs"]])
def test_a_column_that_is_not_there_is_said_before_a_mechanism_is_loaded_and_a_question_asked(
    work, at_terminal, capsys, wrong
):
    code, questions = at_terminal(True, "privatize", "in.jsonl", "-o", "out.jsonl", *wrong)
    assert code == 1
    assert not questions
    err = capsys.readouterr().err
    assert f"expected a column {wrong[1]!r}" in err
    assert "strength" not in err
    assert not Path("out.jsonl").exists()
