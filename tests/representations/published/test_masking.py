"""Words replaced by a mask token: which, how often, and that nothing is promised for it."""

import math

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext.errors import DataError, ParameterError
from dptext.io.documents import Document
from dptext.privacy.guarantee import NoGuarantee, Unit
from dptext.representations.published import mask_words

FALSE_ALARM = 1e-6


def masks(texts, **options):
    """(words of all texts,) which are masked; the words must be apart."""
    return np.array([word == "[MASK]" for text in mask_words(texts, **options).texts for word in text.split()])


@pytest.mark.parametrize("mu", [0.1, 0.5, 0.9])
def test_each_word_is_masked_with_its_chance_and_one_and_a_half_times_the_odds_are_rejected(mu):
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


def test_a_fixed_number_is_a_uniform_subset():
    draws = 10_000
    hidden = masks(["a b c d"] * draws, count=2).reshape(draws, 4)
    assert (hidden.sum(axis=1) == 2).all()
    codes = hidden @ (1 << np.arange(4))
    counts = [int((codes == code).sum()) for code in (3, 5, 6, 9, 10, 12)]
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert sum(counts) == draws
    assert mask_words(["a", "", "a b c"], count=2).texts[:2] == ["[MASK]", ""]
    assert mask_words(["a b"], count=0).texts == ["a b"]


def test_the_ends_mask_all_and_nothing():
    texts = ["I don't know 3.14 me@x.org!", "", "...", "\U0001f600"]
    assert mask_words(texts, mu=0.0).texts == texts
    assert mask_words(texts, mu=1.0).texts == ["[MASK] [MASK] [MASK] [MASK] [MASK] [MASK]!", "", "...", "[MASK]"]
    assert mask_words(["東京へ"], mu=1.0, mask="#").texts[0].replace(" ", "") == "###"


def test_listed_words_are_masked_in_any_form_and_all_others_stay():
    listed = ["Smith", "Jean-Luc Picard", "caf\u00e9", "555"]
    text = "SMITH's cafe\u0301, Jean Luc Picard; jean luc; smithy 555 or 5555."
    [masked] = mask_words([text], sensitive=listed).texts
    assert masked == "[MASK] 's [MASK], [MASK] [MASK] [MASK]; jean luc; smithy [MASK] or 5555."
    both = masks(["secret plain " * 20_000], sensitive=["secret"], mu=0.25).reshape(-1, 2)
    assert both[:, 0].all()
    assert stats.binomtest(int(both[:, 1].sum()), len(both), 0.25).pvalue > FALSE_ALARM
    overlapping = mask_words(["a b a b c"], sensitive=["a b a", "b c"]).texts
    assert overlapping == ["[MASK] [MASK] [MASK] [MASK] [MASK]"]


def test_where_a_mask_stands_hangs_on_the_layout_alone():
    """Two texts that differ in one word: what is masked is masked in both, and the masked texts are equal there."""
    one, other = (mask_words([f"the {word} sat, twice."] * 500, mu=0.5, seed=4).texts for word in ("cat", "crocodile"))
    for first, second in zip(one, other, strict=True):
        assert (first == second) == ("cat" not in first)


def test_entropy_is_fresh_and_a_seed_repeats():
    texts = ["word " * 64]
    assert mask_words(texts, mu=0.5).texts != mask_words(texts, mu=0.5).texts
    assert mask_words(texts, mu=0.5, seed=1).texts == mask_words(texts, mu=0.5, seed=1).texts
    assert not mask_words(texts, mu=0.5).statement.seeded
    assert mask_words(texts, mu=0.5, seed=1).statement.seeded


def test_every_text_is_answered():
    """Warnings are errors in these tests."""
    texts = ["", None, " ", "\ud800", "a" * 10**6, "w " * 10**5, math.nan, Document("a b")]
    for options in ({"mu": 0.5}, {"count": 3}, {"sensitive": ["w"]}):
        result = mask_words(texts, **options).texts
        assert len(result) == len(texts)
        assert (result[1], result[6]) == (None, None)
        assert (result[0], result[2]) == ("", " ")
    assert mask_words([], mu=0.5).texts == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sensitive": ["smith"]}, "all others are visible"),
        ({"mu": 0.5}, "has no guarantee of its own"),
        ({"count": 3, "sensitive": ["smith"]}, "has no guarantee of its own"),
    ],
)
def test_its_statement_promises_nothing_and_says_why(options, says):
    statement = mask_words(["Smith was here"], **options).statement
    assert isinstance(statement.guarantee, NoGuarantee)
    assert says in statement.guarantee.reason
    assert math.isinf(statement.epsilon)
    assert statement.unit is Unit.WORD
    assert dptext.PrivacyStatement.from_json(statement.to_json()) == statement
    text = statement.explain()
    assert "every word that was not masked" in text
    assert "smith" not in (text + statement.to_json()).lower()  # the list itself is not told


def test_neither_list_nor_text_is_in_what_is_printed():
    masked = mask_words(["Smith was here"], sensitive=["here"])
    assert "Smith" not in repr(masked)
    with pytest.raises(DataError) as error:
        mask_words(["Smith", 7], mu=0.5)
    assert str(error.value) == "texts must be strings, entry 2 is int"


def test_bad_arguments_are_refused():
    for options, message in [
        ({}, "which words"),
        ({"mu": 0.1, "count": 2}, "pass one of them"),
        ({"mu": -0.1}, "mu must be a number from 0 to 1"),
        ({"count": -1}, "count must be an integer"),
        ({"sensitive": "smith"}, r"several words, got one string"),
        ({"sensitive": ["smith", "..."]}, "entry 2 has none"),
        ({"mu": 0.5, "mask": " "}, "mask must be a token"),
    ]:
        with pytest.raises(ParameterError, match=message):
            mask_words(["a b"], **options)


def test_one_string_is_no_list_of_texts():
    with pytest.raises(ParameterError, match="texts must be a list"):
        mask_words("a b", mu=0.5)
