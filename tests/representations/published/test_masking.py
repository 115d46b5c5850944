"""Word masking: which words, with which chance, and a statement without guarantee."""

import math

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext.io.documents import Document
from dptext.privacy.guarantee import NoGuarantee, Unit
from dptext.representations.published import mask_words

FALSE_ALARM = 1e-6


def masks(texts, **options):
    """(words,) True for each masked word of all texts."""
    return np.array([word == "[MASK]" for text in mask_words(texts, **options).texts for word in text.split()])


@pytest.mark.parametrize("mu", [0.1, 0.5, 0.9])
def test_every_word_is_masked_with_its_chance_and_one_and_a_half_times_the_odds_are_rejected(mu):
    count = 100_000
    hidden = masks(["word " * count], mu=mu)
    assert len(hidden) == count
    assert stats.binomtest(int(hidden.sum()), count, mu).pvalue > FALSE_ALARM
    odds = 1.5 * mu / (1 - mu)
    assert stats.binomtest(int(hidden.sum()), count, odds / (1 + odds)).pvalue < FALSE_ALARM


def test_masks_of_two_words_and_of_two_texts_are_independent():
    count = 40_000
    hidden = masks(["a b"] * count, mu=0.3).reshape(count, 2)
    assert stats.chi2_contingency(np.histogram2d(*hidden.T.astype(int), bins=2)[0]).pvalue > FALSE_ALARM
    neighbours = np.histogram2d(hidden[:-1, 0].astype(int), hidden[1:, 0].astype(int), bins=2)[0]
    assert stats.chi2_contingency(neighbours).pvalue > FALSE_ALARM


def test_masks_are_fresh_and_depend_on_the_layout_alone():
    texts = ["I don't know 3.14 me@x.org!", "", "...", "\U0001f600"]
    assert mask_words(texts, mu=1.0).texts == ["[MASK] [MASK] [MASK] [MASK] [MASK] [MASK]!", "", "...", "[MASK]"]
    one, other = (mask_words([f"the {word} sat, twice."] * 500, mu=0.5, seed=4).texts for word in ("cat", "crocodile"))
    for first, second in zip(one, other, strict=True):
        assert (first == second) == ("cat" not in first)
    texts = ["word " * 64]
    assert mask_words(texts, mu=0.5).texts != mask_words(texts, mu=0.5).texts
    assert mask_words(texts, mu=0.5, seed=1).texts == mask_words(texts, mu=0.5, seed=1).texts
    assert mask_words(texts, mu=0.5, seed=1).statement.seeded and not mask_words(texts, mu=0.5).statement.seeded
    texts = ["", None, " ", "\ud800", "a" * 10**6, "w " * 10**5, math.nan, Document("a b")]
    masked = mask_words(texts, mu=0.5).texts
    assert [text is None for text in masked] == [False, True, *[False] * 4, True, False]
    assert (masked[0], masked[2]) == ("", " ")


def test_statement_has_no_guarantee():
    masked = mask_words(["Smith was here"], mu=0.5)
    statement = masked.statement
    assert isinstance(statement.guarantee, NoGuarantee) and "has no guarantee of its own" in statement.guarantee.reason
    assert (statement.epsilon, statement.unit) == (math.inf, Unit.WORD)
    assert dptext.PrivacyStatement.from_json(statement.to_json()) == statement
    text = statement.explain()
    assert "every word that was not masked" in text
    assert "smith" not in (text + statement.to_json() + repr(masked)).lower()
