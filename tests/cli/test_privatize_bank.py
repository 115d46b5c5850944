"""``dptext privatize --mechanism bank``: sentences and documents as texts of a public bank, all ways of files."""

import json
import os

import numpy as np
import pytest

import dptext
from dptext.ledger.ledger import Ledger

MARKER = "qsecretq"
PUBLIC = [
    f"the {noun} was {quality}"
    for noun in ("tea", "room", "staff")
    for quality in ("good", "bad", "late", "dear", "new")
]
TEXTS = ["The tea was late. The staff were good.", "", f"{MARKER}!", "A bad room? A bad room. A bad room!"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("public") / "bank"
    words = sorted({word for text in PUBLIC for word in text.split()})
    vectors = dptext.load_vectors((words, np.random.default_rng(2).normal(size=(len(words), 6))))
    dptext.TextBank(PUBLIC, encoder=dptext.MeanOfWords(vectors), name="hotels", cache=False).save(place)
    return str(place)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("in.jsonl")
    return tmp_path


def write(name):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as stream:
        stream.writelines(json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(TEXTS))


def read(name):
    with open(name) as stream:
        return [json.loads(line) for line in stream]


@pytest.fixture
def privatize(run, folder):
    def call(*arguments):
        return run(
            "privatize", "--mechanism", "bank", "--bank", folder, "--epsilon", "8", *arguments
        )  # the last counts

    return call


def counts(name):
    """How many sentences of the bank each row holds, and nothing else."""
    counted = []
    for row in read(name):
        counted.append(0)
        while row["text"]:
            sentence = next(text for text in PUBLIC if row["text"].startswith(text))
            row["text"] = row["text"].removeprefix(sentence).removeprefix(" ")
            counted[-1] += 1
    return counted


@pytest.mark.parametrize(
    ("options", "sentences", "epsilon", "message"),
    [
        ([], [2, 0, 1, 3], 24.0, "document  8 times its number of sentences, which is exposed"),
        (["--max-sentences", "2"], [2, 0, 1, 2], 16.0, "document  at most 16, for 2 sentences"),
        (["--unit", "document"], [1, 1, 1, 1], 8.0, "document  replaced by one text of the bank"),
        (["--unit", "document", "--max-sentences", "2"], [2, 2, 2, 2], 8.0, "document  always 2 sentences, 4 each"),
    ],
)
def test_what_comes_out_is_of_the_bank_and_as_the_unit_says(work, privatize, options, sentences, epsilon, message):
    code, out, err = privatize("in.jsonl", "-o", "out.jsonl", "--keep", "n", "--set", "size=3", *options)
    assert (code, out) == (0, "")
    assert counts("out.jsonl") == sentences
    assert [row["n"] for row in read("out.jsonl")] == [0, 1, 2, 3]
    statement = dptext.PrivacyStatement.from_json((work / "out.jsonl.privacy.json").read_text())
    assert (statement.guarantee, statement.unit) == (dptext.PureDP(epsilon), "document")
    assert (statement.parameters["size"], statement.parameters["bank"]) == (3, "hotels")
    before = err[: err.index("Wrote ")]
    assert before.startswith("BankRewriter on the bank 'hotels' (15 public texts)\n  unit      ")
    assert message in before
    assert "8, pure, for a " in before and "(chance level 0.34%)" in before
    assert max(map(len, before.splitlines())) <= 80
    assert MARKER not in (work / "out.jsonl").read_text() + err


def test_a_ledger_charges_the_sentences_that_a_document_may_have(work, privatize):
    Ledger.create("book", epsilon=30.0)
    code, _, err = privatize("in.jsonl", "-o", "out.jsonl", "--ledger", "book")
    assert (code, "limit the replaced parts" in err) == (3, True)
    assert privatize("in.jsonl", "-o", "out.jsonl", "--ledger", "book", "--max-sentences", "3")[0] == 0
    assert Ledger("book").left(TEXTS[0]).spent == 24.0
    code, _, err = privatize("in.jsonl", "-o", "more.jsonl", "--ledger", "book", "--unit", "document")
    assert (code, "would be overspent" in err) == (3, True)


def test_the_private_file_is_no_bank(work, run):
    """Nothing else than the file is known: a copy of its texts under another form is not recognised."""
    os.rename("in.jsonl", "notes.jsonl")
    write("more.jsonl")
    os.mkdir("texts")
    os.rename("more.jsonl", "texts/more.jsonl")
    assert run("bank", "notes.jsonl", "-o", "own", "--sentences", "--encoder", "words", "-q") == (0, "", "")
    options = "--mechanism", "bank", "--bank", "own", "--epsilon", "8", "-q"
    for source, out in (("notes.jsonl", "out.jsonl"), ("texts", "private")):  # the same bytes
        code, _, err = run("privatize", source, "-o", out, *options)
        assert (code, err.count("\n")) == (2, 1)
        assert "the bank holds the texts of" in err
        assert not os.path.exists(out)
    with open("notes.jsonl", "a") as stream:
        stream.write(json.dumps({"text": "Another one."}) + "\n")
    assert run("privatize", "notes.jsonl", "-o", "out.jsonl", *options)[0] == 0
