"""Previews of word mechanisms: their numbers agree with the mechanisms."""

import numpy as np
import pytest

from dptext import TEM, SubsetSelection
from dptext.methods.words import WordPreviewer
from dptext.privacy.guarantee import best_guesses

TEXT = "The cat, 7 dogs and a dog!"
exact = pytest.mark.parametrize(("choice", "mechanism"), [("TEM", TEM), ("SubsetSelection", SubsetSelection)])


def preview(vectors, text=TEXT, epsilon=1.5, choice="TEM", neighbour=None, draws=3):
    return WordPreviewer(vectors, None).show(text, epsilon, choice=choice, neighbour=neighbour, draws=draws)


@exact
def test_numbers_are_those_of_the_mechanism(vectors, choice, mechanism):
    result, row = preview(vectors, choice=choice), vectors.vocabulary.row
    pieces = {piece.text: piece for piece in result.pieces}
    assert "".join(piece.text for piece in result.pieces) == TEXT
    expected = mechanism(vectors, epsilon=1.5).probabilities("cat")
    assert pieces["cat"].stays == expected[row("cat")]
    assert all(chance == expected[row(word)] for word, chance in pieces["cat"].replacements)
    likeliest = np.sort(np.delete(expected, row("cat")))[::-1][: len(pieces["cat"].replacements)]
    assert [chance for _, chance in pieces["cat"].replacements] == likeliest.tolist()
    assert pieces[","].stays is None and pieces[","].replacements == ()
    assert pieces["7"].stays is None and pieces["7"].replacements == (("<number>", 1.0),)
    assert pieces["dogs"].stays == 0.0  # unknown
    # the best adversary; the candidates are the whole vocabulary here
    for epsilon in (0.5, 2.0, 6.0):
        attack = preview(vectors, epsilon=epsilon, choice=choice).attack
        table = mechanism(vectors, epsilon=epsilon).distributions(list(vectors.words))
        best = best_guesses([table], np.full(len(vectors), 1 / len(vectors)))
        assert (attack.success, attack.chance) == pytest.approx((best.rate, best.blind), abs=1e-12)


@exact
def test_the_overlap_of_one_word_is_one_minus_the_total_variation(vectors, choice, mechanism):
    neighbours = preview(vectors, "cat dog", 1.0, choice, neighbour="cat fox").neighbours
    one, other = (mechanism(vectors, epsilon=1.0).probabilities(word) for word in ("dog", "fox"))
    assert neighbours.overlap == pytest.approx(1 - np.abs(one - other).sum() / 2, abs=1e-12)
    for name, first, second in neighbours.outcomes[:-1]:
        row = vectors.vocabulary.row(name)
        assert (first, second) == (one[row], other[row])
    for place in (1, 2):
        assert sum(outcome[place] for outcome in neighbours.outcomes) == pytest.approx(1.0, abs=1e-9)


def test_the_overlap_of_two_words_agrees_with_enumeration_and_with_the_bound(vectors):
    mechanism = TEM(vectors, epsilon=1.0)
    cat, dog, fox, tax = (mechanism.probabilities(word) for word in ("cat", "dog", "fox", "tax"))
    expected = np.minimum(np.outer(cat, dog), np.outer(fox, tax)).sum()
    # 4,000 draws of numbers from 0 to 1: the standard error is below .008
    assert preview(vectors, "cat dog", 1.0, neighbour="fox tax").neighbours.overlap == pytest.approx(expected, abs=0.03)
    for epsilon in (0.5, 1.0, 3.0):
        neighbours = preview(vectors, "cat", epsilon, "SubsetSelection", neighbour="tax").neighbours
        assert neighbours.overlap >= 1 - np.tanh(epsilon / 2) - 1e-12


def test_layout_decides_if_two_texts_are_neighbours(vectors):
    """Two words that touch get a space; numbers become one placeholder."""
    for text, neighbour, overlap in [
        ("cat dog", "cat dog fox", 0.0),
        ("cat dog", "Cat DOG", 1.0),
        ("don't, 7", "do n't, 1234", 1.0),
    ]:
        assert preview(vectors, text, neighbour=neighbour).neighbours.overlap == overlap
    for text in ("cat's dog", "the cat's", "cat, 7 dogs"):
        neighbours = preview(vectors, text).neighbours  # a suggestion
        assert neighbours.first == text != neighbours.second and 0 < neighbours.overlap < 1
    assert "no neighbour to suggest" in preview(vectors, "qzxv").neighbours.sentence
    for text, neighbour in (("qzxv", "wvrrk"), ("cat", "cat")):
        sentence = preview(vectors, text, neighbour=neighbour).neighbours.sentence
        assert "no adversary can distinguish them" in sentence
    for draw in preview(vectors, "cat, 3 dogs!", draws=5).draws:
        first, rest = draw.split(", ")
        assert first in vectors.words and rest.startswith("<number> ") and rest.endswith("!")


@pytest.mark.parametrize("choice", WordPreviewer.choices)
def test_a_larger_epsilon_hides_less(vectors, choice):
    epsilons = (0.01, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0)
    results = [preview(vectors, "cat dog", epsilon, choice, neighbour="cat tax") for epsilon in epsilons]
    tiny, *_, huge = results
    assert huge.attack.success > 0.95 and huge.neighbours.overlap < 0.05 and huge.pieces[0].stays > 0.95
    assert tiny.attack.success < tiny.attack.chance + 0.05 and tiny.neighbours.overlap > 0.95
    rights, overlaps = [entry.attack.success for entry in results], [entry.neighbours.overlap for entry in results]
    assert rights == sorted(rights) and overlaps == sorted(overlaps, reverse=True)
    for piece in preview(vectors, "cat dog fox tax fee law red blue qzxv", 3.0, choice).pieces:
        assert (piece.stays or 0.0) + sum(chance for _, chance in piece.replacements) <= 1.0 + 1e-12


def test_a_text_without_words_has_no_guarantee(vectors):
    """Its punctuation remains, at any bound between texts of one layout."""
    for text in ("?!... --- ,;:", "123 456 7.5"):
        result = preview(vectors, text)
        assert not result.protects and "there is no guarantee" in result.guarantee
        assert "does not protect" in result.strength
    assert preview(vectors, "cat", epsilon=0.01, choice="SubsetSelection").protects
