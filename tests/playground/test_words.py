"""Previews of word mechanisms: their numbers are those of the mechanisms."""

import numpy as np
import pytest

from dptext import TEM, SubsetSelection
from dptext.methods.words import WordPreviewer
from dptext.privacy.guarantee import best_guesses

EXACT = [("TEM", TEM), ("SubsetSelection", SubsetSelection)]
TEXT = "The cat, 7 dogs and a dog!"


def preview(vectors, text=TEXT, epsilon=1.5, choice="TEM", neighbour=None, draws=3):
    return WordPreviewer(vectors, None).show(text, epsilon, choice=choice, neighbour=neighbour, draws=draws)


@pytest.mark.parametrize(("choice", "mechanism"), EXACT)
def test_chances_are_those_of_the_mechanism(vectors, choice, mechanism):
    result = preview(vectors, choice=choice)
    assert "".join(piece.text for piece in result.pieces) == TEXT
    expected = mechanism(vectors, epsilon=1.5).probabilities("cat")
    cat = next(piece for piece in result.pieces if piece.text == "cat")
    row = vectors.vocabulary.row("cat")
    assert cat.stays == expected[row]
    assert all(chance == expected[vectors.vocabulary.row(word)] for word, chance in cat.replacements)
    likeliest = np.sort(np.delete(expected, row))[::-1][: len(cat.replacements)]
    assert [chance for _, chance in cat.replacements] == likeliest.tolist()


def test_only_words_have_a_chance_to_stay(vectors):
    result = {piece.text: piece for piece in preview(vectors).pieces}
    assert result[","].stays is None and result[","].replacements == () and result[" "].stays is None
    assert result["7"].stays is None and result["7"].replacements == (("<number>", 1.0),)


def test_an_unknown_word_never_stays(vectors):
    unknown = next(piece for piece in preview(vectors, epsilon=20.0).pieces if piece.text == "dogs")
    assert unknown.stays == 0.0 and unknown.replacements[0][0] == "<unk>"


@pytest.mark.parametrize(("choice", "mechanism"), EXACT)
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_adversary_is_the_best_possible_one(vectors, choice, mechanism, epsilon):
    """The candidates are the whole vocabulary here, all equally likely."""
    attack = preview(vectors, epsilon=epsilon, choice=choice).attack
    table = mechanism(vectors, epsilon=epsilon).distributions(list(vectors.words))
    expected = best_guesses([table], np.full(len(vectors), 1 / len(vectors)))
    assert attack.success == pytest.approx(expected.rate, abs=1e-12)
    assert attack.chance == pytest.approx(expected.blind, abs=1e-12)


@pytest.mark.parametrize(("choice", "mechanism"), EXACT)
def test_overlap_of_one_word_is_one_minus_total_variation(vectors, choice, mechanism):
    neighbours = preview(vectors, "cat dog", 1.0, choice, neighbour="cat fox").neighbours
    one, other = (mechanism(vectors, epsilon=1.0).probabilities(word) for word in ("dog", "fox"))
    assert neighbours.overlap == pytest.approx(1 - np.abs(one - other).sum() / 2, abs=1e-12)
    for name, first, second in neighbours.outcomes[:-1]:
        row = vectors.vocabulary.row(name)
        assert (first, second) == (one[row], other[row])
    assert sum(outcome[1] for outcome in neighbours.outcomes) == pytest.approx(1.0, abs=1e-9)
    assert sum(outcome[2] for outcome in neighbours.outcomes) == pytest.approx(1.0, abs=1e-9)


def test_overlap_of_two_words_is_that_of_enumeration(vectors):
    mechanism = TEM(vectors, epsilon=1.0)
    cat, dog, fox, tax = (mechanism.probabilities(word) for word in ("cat", "dog", "fox", "tax"))
    expected = np.minimum(np.outer(cat, dog), np.outer(fox, tax)).sum()
    # 4,000 draws of numbers from 0 to 1: the standard error is below .008
    assert preview(vectors, "cat dog", 1.0, neighbour="fox tax").neighbours.overlap == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_no_overlap_is_below_the_bound_of_a_pure_guarantee(vectors, epsilon):
    neighbours = preview(vectors, "cat", epsilon, "SubsetSelection", neighbour="tax").neighbours
    assert neighbours.overlap >= 1 - np.tanh(epsilon / 2) - 1e-12


def test_texts_of_different_layout_do_not_overlap(vectors):
    assert preview(vectors, "cat dog", neighbour="cat dog fox").neighbours.overlap == 0.0
    assert preview(vectors, "cat dog", neighbour="Cat DOG").neighbours.overlap == 1.0


def test_texts_whose_outputs_look_alike_are_of_one_layout(vectors):
    """A space is put between two words that touch; numbers become one placeholder."""
    assert preview(vectors, "don't, 7", neighbour="do n't, 1234").neighbours.overlap == 1.0


def test_suggested_neighbour_has_the_layout_of_the_text(vectors):
    for text in ("cat's dog", "the cat's", "cat, 7 dogs"):
        neighbours = preview(vectors, text).neighbours
        assert neighbours.first == text != neighbours.second and 0 < neighbours.overlap < 1


@pytest.mark.parametrize("choice", ["TEM", "SubsetSelection", "Madlib"])
def test_a_huge_epsilon_reveals_everything_and_a_tiny_one_nothing(vectors, choice):
    huge = preview(vectors, "cat dog", 20.0, choice, neighbour="cat tax")
    assert huge.attack.success > 0.95 and huge.neighbours.overlap < 0.05 and huge.pieces[0].stays > 0.95
    tiny = preview(vectors, "cat dog", 0.01, choice, neighbour="cat tax")
    assert tiny.attack.success < tiny.attack.chance + 0.05 and tiny.neighbours.overlap > 0.95


@pytest.mark.parametrize("choice", ["TEM", "SubsetSelection"])
def test_more_epsilon_hides_less(vectors, choice):
    results = [preview(vectors, "cat dog", entry, choice, neighbour="cat tax") for entry in (0.5, 1.0, 2.0, 4.0, 8.0)]
    rights, overlaps = [entry.attack.success for entry in results], [entry.neighbours.overlap for entry in results]
    assert rights == sorted(rights) and overlaps == sorted(overlaps, reverse=True)


def test_draws_keep_the_layout(vectors):
    for draw in preview(vectors, "cat, 3 dogs!", draws=5).draws:
        first, rest = draw.split(", ")
        assert first in vectors.words and rest.startswith("<number> ") and rest.endswith("!")


@pytest.mark.parametrize("text", ["?!... --- ,;:", "123 456 7.5"])
def test_a_text_without_words_has_no_guarantee(vectors, text):
    """Its punctuation comes out as it stands, whatever the bound between texts of one layout says."""
    result = preview(vectors, text)
    assert not result.protects and "there is no guarantee" in result.guarantee and "does not protect" in result.strength
    assert preview(vectors, "cat", epsilon=0.01, choice="SubsetSelection").protects


def test_a_text_is_not_its_own_neighbour(vectors):
    assert "no neighbour to suggest" in preview(vectors, "qzxv").neighbours.sentence
    assert "no adversary can distinguish them" in preview(vectors, "qzxv", neighbour="wvrrk").neighbours.sentence
    assert "no adversary can distinguish them" in preview(vectors, "cat", neighbour="cat").neighbours.sentence


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
def test_chances_of_a_word_under_madlib_are_at_most_one(vectors, epsilon):
    for piece in preview(vectors, "cat dog fox tax fee law red blue qzxv", epsilon, "Madlib").pieces:
        assert (piece.stays or 0.0) + sum(chance for _, chance in piece.replacements) <= 1.0 + 1e-12
