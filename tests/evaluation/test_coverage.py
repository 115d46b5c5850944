"""Texts in other languages have few words of a public vocabulary or pool; texts of the same kind have nearly all."""

from itertools import chain, repeat

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.evaluation.coverage import LEVEL, median_words
from dptext.methods.data import utterances
from dptext.release.run import FIRST_ROWS
from evaluation.languages import FOREIGN, TEXTS

POOL = dptext.Pool([text for text, _ in utterances("train")][:2_000])
OTHERS = [text for text, _ in utterances("test")]


@pytest.fixture(scope="module")
def vectors():
    return dptext.load_vectors("minilm-words-128d")


def test_english_word_vectors_know_english_texts_and_no_other_language(vectors):
    for texts in (TEXTS["English"], OTHERS, POOL.texts):
        result = dptext.coverage(texts, vectors)
        assert result.share > 0.9 and result.expected == 1 and not result.is_low
    shares = {language: dptext.coverage(TEXTS[language], vectors).share for language in FOREIGN}
    assert max(shares.values()) < 0.9 * LEVEL, shares
    assert shares["Japanese"] == shares["Russian"] == 0


def test_a_pool_covers_texts_of_its_kind_and_no_other_language():
    same = dptext.coverage(OTHERS, POOL)
    assert same.share == pytest.approx(same.expected, abs=0.05) and not same.is_low
    for language in FOREIGN:
        result = dptext.coverage(TEXTS[language], POOL)
        assert result.is_low and result.share < 0.5 * result.expected
    japanese = dptext.Pool(TEXTS["Japanese"])
    assert (
        dptext.coverage(TEXTS["English"], japanese).is_low and not dptext.coverage(TEXTS["Japanese"], japanese).is_low
    )


def test_a_bank_and_encoders_and_mechanisms_are_compared_by_their_words(vectors):
    texts = TEXTS["French"]
    mean = dptext.MeanOfWords(vectors)
    bank = dptext.TextBank(dptext.Pool(POOL.texts[:50]), encoder=mean, cache=False)
    device = dptext.PrivateEncoder(mean, dptext.PrivUnit(epsilon=4.0)).fit(None).release_
    mechanism = dptext.Redacted(dptext.SanText(vectors, epsilon=4.0))
    expected = dptext.coverage(texts, vectors)
    assert all(dptext.coverage(texts, public) == expected for public in (mean, device, mechanism))
    expected = dptext.coverage(texts, dptext.Pool(POOL.texts[:50]))
    assert all(dptext.coverage(texts, public) == expected for public in (bank, dptext.BankRewriter(bank, epsilon=4.0)))
    function = dptext.CallableEncoder(lambda texts: np.ones((len(texts), 2)), name="mine")
    assert dptext.coverage(texts, function) is None  # nothing is known about its languages
    assert dptext.coverage(["", None, "17 !"], vectors) is None
    with pytest.raises(ParameterError, match="public must be word vectors, a pool, a bank or an encoder"):
        dptext.coverage(texts, TEXTS["English"])
    with pytest.raises(DataError):
        dptext.coverage([1], vectors)


def test_only_the_first_texts_are_read(vectors):
    rows = iter(chain(repeat("tea", FIRST_ROWS), TEXTS["Russian"]))
    assert dptext.coverage(rows, vectors).share == 1
    assert next(rows) == TEXTS["Russian"][0]


def test_words_are_counted_per_unit():
    document = "One two three. Four five.\n\nSix seven eight nine.\n\n" + "A word. " * 60
    assert median_words([document, document]) == {"sentence": 2, "paragraph": 5, "document": 129}
    assert median_words(["", " "]) == {"sentence": 0, "paragraph": 0, "document": 0}
