"""What the playground shows of words: the numbers of the mechanisms themselves."""

import numpy as np
import pytest
from papers.guessing import guess_rate

from dptext import TEM, Madlib, SubsetSelection
from dptext.methods.word_preview import Rays, WordPreviewer
from dptext.privacy.randomness import RandomBits

EXACT = [("TEM", TEM), ("SubsetSelection", SubsetSelection)]
TEXT = "The cat, 7 dogs and a dog!"


def shown(vectors, text=TEXT, epsilon=1.5, choice="TEM", neighbour=None, draws=3):
    return WordPreviewer(vectors).show(text, epsilon, choice=choice, neighbour=neighbour, draws=draws)


@pytest.mark.parametrize(("choice", "mechanism"), EXACT)
def test_chances_are_those_of_the_mechanism(vectors, choice, mechanism):
    result = shown(vectors, choice=choice)
    assert "".join(piece.text for piece in result.pieces) == TEXT
    expected = mechanism(vectors, epsilon=1.5).probabilities("cat")
    cat = next(piece for piece in result.pieces if piece.text == "cat")
    row = vectors.vocabulary.row("cat")
    assert cat.stays == expected[row]
    assert all(chance == expected[vectors.vocabulary.row(word)] for word, chance in cat.becomes)
    likeliest = np.sort(np.delete(expected, row))[::-1][: len(cat.becomes)]
    assert [chance for _, chance in cat.becomes] == likeliest.tolist()


def test_what_is_no_word_has_no_chance_to_stay(vectors):
    result = {piece.text: piece for piece in shown(vectors).pieces}
    assert result[","].stays is None and result[","].becomes == () and result[" "].stays is None
    assert result["7"].stays is None and result["7"].becomes == (("<number>", 1.0),)


def test_an_unknown_word_never_stays(vectors):
    unknown = next(piece for piece in shown(vectors, epsilon=20.0).pieces if piece.text == "dogs")
    assert unknown.stays == 0.0 and unknown.becomes[0][0] == "<unk>"


@pytest.mark.parametrize(("choice", "mechanism"), EXACT)
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_attacker_is_the_best_one_of_calibration(vectors, choice, mechanism, epsilon):
    """The candidates are the whole vocabulary here, all equally likely."""
    attacker = shown(vectors, epsilon=epsilon, choice=choice).attacker
    expected = guess_rate(mechanism(vectors, epsilon=epsilon), weights=np.ones(len(vectors)))
    assert attacker.right == pytest.approx(expected.rate, abs=1e-12)
    assert attacker.blind == pytest.approx(expected.blind, abs=1e-12)


@pytest.mark.parametrize(("choice", "mechanism"), EXACT)
def test_overlap_of_one_word_is_one_minus_total_variation(vectors, choice, mechanism):
    neighbours = shown(vectors, "cat dog", 1.0, choice, neighbour="cat fox").neighbours
    one, other = (mechanism(vectors, epsilon=1.0).probabilities(word) for word in ("dog", "fox"))
    assert neighbours.overlap == pytest.approx(1 - np.abs(one - other).sum() / 2, abs=1e-12)
    for name, first, second in neighbours.outcomes[:-1]:
        row = vectors.vocabulary.row(name)
        assert (first, second) == (one[row], other[row])
    assert sum(outcome[1] for outcome in neighbours.outcomes) == pytest.approx(1.0, abs=1e-9)
    assert sum(outcome[2] for outcome in neighbours.outcomes) == pytest.approx(1.0, abs=1e-9)


def test_overlap_of_two_words_holds_what_enumeration_finds(vectors):
    mechanism = TEM(vectors, epsilon=1.0)
    cat, dog, fox, tax = (mechanism.probabilities(word) for word in ("cat", "dog", "fox", "tax"))
    expected = np.minimum(np.outer(cat, dog), np.outer(fox, tax)).sum()
    assert shown(vectors, "cat dog", 1.0, neighbour="fox tax").neighbours.overlap == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_no_overlap_is_below_what_a_pure_promise_allows(vectors, epsilon):
    neighbours = shown(vectors, "cat", epsilon, "SubsetSelection", neighbour="tax").neighbours
    assert neighbours.overlap >= 1 - np.tanh(epsilon / 2) - 1e-12


def test_another_layout_is_told_from_every_output(vectors):
    assert shown(vectors, "cat dog", neighbour="cat dog fox").neighbours.overlap == 0.0
    assert shown(vectors, "cat dog", neighbour="Cat DOG").neighbours.overlap == 1.0


def test_texts_whose_outputs_look_alike_are_of_one_layout(vectors):
    """A space is put between two words that touch; numbers become one placeholder."""
    assert shown(vectors, "don't, 7", neighbour="do n't, 1234").neighbours.overlap == 1.0


def test_the_neighbour_that_is_offered_has_the_layout_of_the_text(vectors):
    for text in ("cat's dog", "the cat's", "cat, 7 dogs"):
        neighbours = shown(vectors, text).neighbours
        assert neighbours.first == text != neighbours.second and 0 < neighbours.overlap < 1


@pytest.mark.parametrize("choice", ["TEM", "SubsetSelection", "Madlib"])
def test_a_huge_epsilon_shows_all_and_a_tiny_one_nothing(vectors, choice):
    huge = shown(vectors, "cat dog", 20.0, choice, neighbour="cat tax")
    assert huge.attacker.right > 0.95 and huge.neighbours.overlap < 0.05 and huge.pieces[0].stays > 0.95
    tiny = shown(vectors, "cat dog", 0.01, choice, neighbour="cat tax")
    assert tiny.attacker.right < tiny.attacker.blind + 0.05 and tiny.neighbours.overlap > 0.95


@pytest.mark.parametrize("choice", ["TEM", "SubsetSelection"])
def test_more_epsilon_hides_less(vectors, choice):
    results = [shown(vectors, "cat dog", entry, choice, neighbour="cat tax") for entry in (0.5, 1.0, 2.0, 4.0, 8.0)]
    rights, overlaps = [entry.attacker.right for entry in results], [entry.neighbours.overlap for entry in results]
    assert rights == sorted(rights) and overlaps == sorted(overlaps, reverse=True)


def test_draws_keep_the_layout(vectors):
    for draw in shown(vectors, "cat, 3 dogs!", draws=5).draws:
        first, rest = draw.split(", ")
        assert first in vectors.words and rest.startswith("<number> ") and rest.endswith("!")


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 4.0])
def test_rays_find_how_often_a_word_stays_under_madlib(vectors, epsilon):
    """Seeded on both sides: 20,000 draws are off by less than .02, and 30 times 128 directions by less than .03."""
    row = vectors.vocabulary.row("cat")
    averaged = np.mean([Rays(vectors.matrix, RandomBits(seed)).stays(row, epsilon) for seed in range(30)])
    draws = np.mean(np.array(Madlib(vectors, epsilon=epsilon).sample(["cat"] * 20_000, seed=3)) == "cat")
    assert averaged == pytest.approx(draws, abs=0.05)
    wrong = np.mean(np.array(Madlib(vectors, epsilon=2 * epsilon).sample(["cat"] * 20_000, seed=3)) == "cat")
    assert abs(averaged - wrong) > 0.05


def test_what_madlib_shows_of_the_noisy_vector_is_no_less_than_its_words_show(vectors):
    """The best attacker on 11 words, of whom only the word is seen, is right less often than the one shown."""
    mechanism = Madlib(vectors, epsilon=2.0)
    of_words = guess_rate(mechanism, weights=np.ones(len(vectors)), draws=20_000, seed=1)
    assert shown(vectors, "cat", 2.0, "Madlib").attacker.right > of_words.low - 0.1


@pytest.mark.parametrize("text", ["?!... --- ,;:", "123 456 7.5"])
def test_a_text_without_words_is_promised_nothing(vectors, text):
    """Its punctuation comes out as it stands, whatever the bound between texts of one layout says."""
    result = shown(vectors, text)
    assert not result.protects and "nothing is promised" in result.promise and "does not protect" in result.strength
    assert shown(vectors, "cat", epsilon=0.01, choice="SubsetSelection").protects


def test_a_text_is_not_called_its_own_neighbour(vectors):
    assert "no neighbour is offered" in shown(vectors, "qzxv").neighbours.says
    assert "nobody can tell them apart" in shown(vectors, "qzxv", neighbour="wvrrk").neighbours.says
    assert "nobody can tell them apart" in shown(vectors, "cat", neighbour="cat").neighbours.says


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
def test_chances_of_a_word_under_madlib_are_at_most_one(vectors, epsilon):
    for piece in shown(vectors, "cat dog fox tax fee law red blue qzxv", epsilon, "Madlib").pieces:
        assert (piece.stays or 0.0) + sum(chance for _, chance in piece.becomes) <= 1.0 + 1e-12
