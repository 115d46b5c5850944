"""What the playground shows of words: the numbers of the mechanisms themselves."""

import numpy as np
import pytest

from dptext import TEM, SubsetSelection, load_vectors
from dptext.playground.words import Words
from dptext.privacy.randomness import RandomBits

WORDS = ("cat", "dog", "fox", "tax", "fee", "law", "red", "blue", "sun", "rain")


@pytest.fixture(scope="module")
def vectors():
    return load_vectors((list(WORDS), RandomBits(5).normal(len(WORDS), 3)))


@pytest.mark.parametrize(("choice", "mechanism"), [("TEM", TEM), ("SubsetSelection", SubsetSelection)])
def test_chances_are_those_of_the_mechanism(vectors, choice, mechanism):
    found = Words(vectors).show("The cat, 7 dogs!", 1.5, choice=choice, neighbour=None, draws=3)
    assert "".join(each.text for each in found.pieces) == "The cat, 7 dogs!"
    expected = mechanism(vectors, epsilon=1.5).probabilities("cat")
    cat = next(each for each in found.pieces if each.text == "cat")
    assert cat.stays == expected[vectors.vocabulary.row("cat")]
    for word, chance in cat.becomes:
        assert chance == expected[vectors.vocabulary.row(word)]
    number = next(each for each in found.pieces if each.text == "7")
    assert number.stays is None and number.becomes == (("<number>", 1.0),)
    assert len(found.draws) == 3


def test_overlap_of_one_word_is_one_minus_total_variation(vectors):
    found = Words(vectors).show("cat dog", 1.0, choice="TEM", neighbour="cat fox", draws=1)
    one, other = (TEM(vectors, epsilon=1.0).probabilities(word) for word in ("dog", "fox"))
    assert found.neighbours.overlap == pytest.approx(1 - np.abs(one - other).sum() / 2, abs=1e-12)
