"""Segmentations of outputs into bank texts, and exact likelihoods of candidate originals."""

from itertools import product

import numpy as np
import pytest

import dptext
from dptext.attacks import linkage_of_scores
from dptext.errors import ParameterError
from dptext.sentences import origins
from dptext.sentences.origins import Likelihoods, Parting
from sentences.banks import bank, documents

TEXTS = ["a", "b", "a b", "b a b", "c"]


def posteriors(likelihoods):
    """The probability of the most likely original of each private text, if all are equally likely before."""
    logs = np.concatenate([likelihoods(row, row + 1) for row in range(likelihoods.shape[0])])
    with np.errstate(invalid="ignore"):
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.where(np.isfinite(logs.max(axis=1)), 1 / shares.sum(axis=1), 0.0)


def test_every_segmentation_is_found():
    """Against enumeration: all sequences of up to four texts."""
    parting = Parting(TEXTS)
    fields = {}
    for count in range(5):
        for rows in product(range(len(TEXTS)), repeat=count):
            fields.setdefault(" ".join(TEXTS[row] for row in rows), set()).add(rows)
    for text, expected in fields.items():
        result = parting.ways(text)
        assert len(result) == len(set(result))
        # a way of more than four texts was not enumerated
        assert {way for way in result if len(way) <= 4} == expected
        assert {len(way) for way in result} <= {*parting.counts(text)}


def test_other_texts_have_no_segmentation():
    for text in ["d", "a d", "a  b", " a", "a ", "ab", "a\nb", "A", "a\tb", " "]:
        parting = Parting(TEXTS)
        assert parting.ways(text) == []
        assert parting.counts(text) == []


def test_the_number_of_segmentations_is_limited():
    assert len(Parting(["a", "a a"]).ways("a " * 40 + "a")) == 64


def _enumerated_likelihood(rewriter, original, private):
    """ln P(private | original) over all sequences of texts of the bank."""
    parts = rewriter.parts(original)
    texts, total = rewriter.bank.texts, 0.0
    for rows in product(range(len(texts)), repeat=len(parts)):
        if " ".join(texts[row] for row in rows) == private:
            total += np.prod([rewriter.probabilities(part)[row] for part, row in zip(parts, rows, strict=True)])
    return np.log(total) if total else -np.inf


def test_likelihoods_are_those_of_the_mechanism():
    for options in [{"unit": "document"}, {"unit": "document", "max_sentences": 2}, {"max_sentences": 2}, {}]:
        small = dptext.TextBank(["Tea. Milk.", "Tea.", "Milk.", "The law."], encoder="words", cache=False)
        rewriter = dptext.BankRewriter(small, epsilon=3.0, size=1, **options)
        originals = ["tea", "Milk. Law.", "", "The law. Tea."]
        private = [*dptext.privatize(originals, rewriter, seed=2).texts, "Tea. Milk.", "Tea. Tea.", "", "Coffee."]
        likelihoods = Likelihoods(rewriter, originals, private)
        target = [[_enumerated_likelihood(rewriter, original, entry) for original in originals] for entry in private]
        assert likelihoods.shape == (len(private), len(originals))
        assert np.allclose(likelihoods(0, len(private)), target)
        assert np.allclose(likelihoods(1, 3), target[1:3])
        logs = np.array(target)
        certain = np.array([1 / np.exp(row - row.max()).sum() if row.max() > -np.inf else 0.0 for row in logs])
        assert np.allclose(posteriors(likelihoods), certain)


def test_a_missing_text_stays_missing():
    rewriter = dptext.BankRewriter(bank(), epsilon=3.0, unit="document")
    result = Likelihoods(rewriter, ["tea", None], [None, bank().texts[0]])(0, 2)
    assert result[0].tolist() == [-np.inf, 0.0]
    assert result[1, 0] > -np.inf == result[1, 1]


@pytest.mark.parametrize("options", [{"unit": "document"}, {"unit": "document", "max_sentences": 2}, {}])
def test_linkage_succeeds_at_a_large_epsilon_only(options):
    """A positive control, and a negative one: a false alarm below 1e-6 (a share of 200 at chance above 8 times it)."""
    texts, _ = documents(200)
    texts = list(dict.fromkeys(texts))
    result = {}
    for epsilon in (1e-6, 30.0):
        rewriter = dptext.BankRewriter(bank(), epsilon=epsilon, size=1, **options)
        private = dptext.privatize(texts, rewriter, seed=3).texts
        likely = Likelihoods(rewriter, texts, private)
        [first, *_] = linkage_of_scores(likely, shape=likely.shape, seed=1)
        result[epsilon] = first.score.value
        assert posteriors(likely).mean() == pytest.approx(first.score.value, abs=0.12)
    # few texts share the one most similar text of the bank; where their number is shown, it tells something
    assert result[30.0] > 0.4
    assert result[1e-6] < (0.06 if "unit" in options else 0.1)


def test_measured_relinking_matches_the_exact_value():
    """Of one part: the share of 600 draws lies near the exact chance (an interval of 5 standard deviations)."""
    texts = list(dict.fromkeys(documents(120, max_sentences=1)[0]))
    rewriter = dptext.BankRewriter(bank(), epsilon=4.0, unit="document")
    exact = rewriter.relinking(len(texts), texts)
    private = [text for seed in range(6) for text in dptext.privatize(texts, rewriter, seed=seed).texts]
    likely = Likelihoods(rewriter, texts, private)
    truth = np.tile(np.arange(len(texts)), 6)
    [first, *_] = linkage_of_scores(likely, shape=likely.shape, truth=truth, seed=1)
    assert abs(first.score.value - exact) < 5 * np.sqrt(exact * (1 - exact) / len(private))
    assert abs(posteriors(likely).mean() - exact) < 5 * np.sqrt(exact * (1 - exact) / len(private))
    assert exact > 3 / len(texts)


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(origins, "_MOST_PAIRS", 3)
    with pytest.raises(ParameterError, match="attack fewer rows"):
        Likelihoods(dptext.BankRewriter(bank(), epsilon=1.0), ["a", "b"], ["a", "b"])
