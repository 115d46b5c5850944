"""A `BankRewriter` with batches of datasets and resumed runs."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError

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
