"""A `BankRewriter` with batches of datasets and resumed runs."""

import json
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError, RefusedError

WORDS = ("tea", "milk", "tax", "fee", "dog", "cat")
PUBLIC = [" ".join(entry) for entry in product(WORDS, repeat=2)]
TEXTS = ["Tea. Milk!", None, "", "A dog? A cat. A tax."]


def bank_of(texts, seed=3):
    vectors = dptext.load_vectors((WORDS, np.random.default_rng(seed).normal(size=(len(WORDS), 4))))
    return dptext.TextBank(texts, encoder=dptext.MeanOfWords(vectors), cache=False)


@pytest.fixture(scope="module")
def bank():
    return bank_of(PUBLIC)


@pytest.fixture(scope="module")
def rewriter(bank):
    return dptext.BankRewriter(bank, epsilon=2.0, max_sentences=2)


def counts(texts):
    """Return the number of bank texts in each private text."""
    results = [None if text is None else text.split() for text in texts]
    assert all(word in WORDS for words in results for word in words or ())
    return [None if words is None else len(words) // 2 for words in results]


# -- batches ----------------------------------------------------------------------------------------------------------


def test_batches_and_their_statement(rewriter):
    privatizer = dptext.batch_privatizer(rewriter)
    private = privatizer({"text": TEXTS})["text"]
    assert counts(private) == [2, None, 0, 2]
    statement = privatizer.statement(private)
    assert statement.parameters["sentences_counted"] == 2
    assert statement.guarantee == dptext.PureDP(4.0)


def test_the_number_of_sentences_is_never_guessed(bank):
    privatizer = dptext.batch_privatizer(dptext.BankRewriter(bank, epsilon=2.0))
    private = privatizer({"text": TEXTS})["text"]
    assert counts(private) == [2, None, 0, 3]
    with pytest.raises(RefusedError, match="give max_sentences, protect documents"):
        privatizer.statement(private)
    for options in ({}, {"max_sentences": 3}):
        whole = dptext.batch_privatizer(dptext.BankRewriter(bank, epsilon=2.0, unit="document", **options))
        statement = whole.statement(whole({"text": TEXTS})["text"])
        assert statement.guarantee == dptext.PureDP(2.0)
        assert statement.neighbours == "any two texts"


def test_the_same_privatizer_reuses_its_release(bank, tmp_path):
    """The pickle does not change when the object is used: otherwise a second ``map`` would be a second release."""
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict({"text": TEXTS * 5}).save_to_disk(tmp_path / "stored")
    stored = datasets.load_from_disk(tmp_path / "stored")
    bank.save(tmp_path / "bank")
    for entry in (bank_of(PUBLIC), dptext.TextBank.load(tmp_path / "bank")):
        privatizer = dptext.batch_privatizer(dptext.BankRewriter(entry, epsilon=2.0, max_sentences=2, size=3))
        fresh = pickle.dumps(privatizer)
        first, repeated = (stored.map(privatizer, batched=True)["text"][:] for _ in range(2))
        assert counts(first) == [2, None, 0, 2] * 5
        assert first == repeated
        assert pickle.dumps(privatizer) == fresh


# -- files ------------------------------------------------------------------------------------------------------------


class Stop(BaseException):
    """Interrupts a run."""


def stop(_reader, _rows):
    raise Stop


def test_a_run_resumes_only_with_the_same_bank_and_settings(bank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", 10)
    Path("in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS * 10))

    def release(of=bank, **options):
        resume = {"resume": options.pop("resume", True), "progress": options.pop("progress", None)}
        fields = {"epsilon": 2.0, "size": 3, "max_sentences": 3, **options}
        return dptext.privatize_file("in.jsonl", "out.jsonl", dptext.BankRewriter(of, **fields), **resume)

    with pytest.raises(Stop):
        release(resume=False, progress=stop)
    changed = {
        "size": {"size": 4},
        "unit_of_epsilon": {"unit": "document"},
        "max_sentences": {"max_sentences": 2},
        "epsilon": {"epsilon": 3.0},
        "bank_sha256": {"of": bank_of(PUBLIC[:-1])},
        "features_sha256": {"of": bank_of(PUBLIC, seed=4)},
    }
    for name, options in changed.items():
        with pytest.raises(ParameterError, match=rf"had other options \(.*{name}.*changed\)"):
            release(**options)
    assert release().resumed == 10
    assert counts(json.loads(line)["text"] for line in Path("out.jsonl").read_text().splitlines())[:4] == [
        2,
        None,
        0,
        3,
    ]
