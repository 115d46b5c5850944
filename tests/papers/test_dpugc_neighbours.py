"""MAP gives the numbers that its paper printed."""

import numpy as np
import pytest
from papers.dpugc.neighbours import (
    PAPER_QUERIES,
    character_precision,
    map_score,
    neighbour_table,
    neighbours,
    word_precision,
)

from dptext import WordVectors
from dptext.errors import ParameterError


@pytest.fixture(scope="module")
def vectors():
    generator = np.random.default_rng(1)
    words = ["<unk>", *(f"w{'abcdefghij'[n % 10]}{n}" for n in range(400))]
    return WordVectors(words, generator.normal(size=(401, 6)))


# Table 2 of the paper: query, gold, list, MAP-Word, MAP-Char
TABLE_2 = [
    ("four:two:five:seven", "zero:one:feeder:nine", 0, 0.3814),  # printed 3.814
    ("seven:nine:six:four", "cornerback:four:stockholders:zero", 0.5, 0.2347),  # printed .1347
    ("we:there:you:he", "morgan:century:contentious:ferroelectric", 0, 0.4237),
    ("four:two:five:seven", "one:in:UNK:zero", 0, 0.1288),
    ("seven:nine:six:four", "integrator:transfection:four:one", 0.33, 0.3561),
    ("we:there:you:he", "that:monorail:it:lesbian", 0, 0.2341),
]


@pytest.mark.parametrize(("gold", "found", "word", "character"), TABLE_2)
def test_map_gives_the_numbers_of_the_paper(gold, found, word, character):
    assert word_precision(found.split(":"), gold.split(":")) == pytest.approx(word, abs=0.0034)
    assert character_precision(found.split(":"), gold.split(":")) == pytest.approx(character, abs=1.5e-4)


def test_precision_has_the_values_one_can_see():
    assert word_precision(["a", "b"], ["b", "a"]) == 1.0
    assert word_precision(["x", "a", "y", "b"], ["a", "b"]) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert word_precision(["a", "x"], ["a", "b"], per="relevant") == 0.5
    assert word_precision(["x"], ["a"]) == character_precision(["x"], ["a"]) == 0.0
    assert character_precision(["ab"], ["ab"]) == 1.0
    assert character_precision(["ba"], ["ab"]) == 0.5  # b has not been yet; a has


def test_neighbours_are_the_nearest_by_cosine(vectors):
    (result,) = neighbours(vectors, ["wa0"], top=5)
    points = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    cosines = points @ points[1]
    expected = [row for row in np.argsort(-cosines) if row > 1][:5]
    assert list(result.words) == [vectors.words[row] for row in expected]
    assert result.cosines == pytest.approx(cosines[expected].tolist(), abs=1e-6)
    table = neighbour_table({"one": vectors, "two": vectors}, ["wa0", "wb1"], top=2).splitlines()
    assert table[0] == "| query | one | two |"
    assert len(table) == 4


def test_noise_costs_map_word_and_hardly_map_char(glove):
    """MAP-Char of vectors that know nothing is that of random words: .88 for GloVe and its noise alike."""
    some = WordVectors(glove.words[:4000], glove.matrix[:4000]) if "<unk>" in glove.words[:4000] else glove
    generator = np.random.default_rng(6)
    noise = WordVectors(some.words, generator.normal(size=some.matrix.shape))
    same = map_score(some, some, seed=1)
    assert same.score.value == 1.0
    assert set(same.by_query) == set(PAPER_QUERIES)
    assert same.score.of == "queries"
    word = map_score(noise, some, seed=1)
    assert word.score.value < 0.2
    assert word.score.low < word.baseline + 0.05
    character = map_score(noise, some, measure="MAP-Char", seed=1)
    assert character.score.value == pytest.approx(character.baseline, abs=0.05)
    assert character.baseline > 0.8


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda v: neighbours(v, []), "queries must hold at least one"),
        (lambda v: neighbours(v, ["wa0", "zebra"]), "queries: word 1 has no vector"),
        (lambda v: neighbours(v, ["wa0"], top=400), "top must be an integer from 1 to 399"),
        (lambda v: map_score(v, v), "queries: word 0 has no vector"),
        (lambda v: map_score(v, v, queries=["wa0"]), "at least two people, got 1"),
        (lambda v: map_score(v, v, measure="MAP"), "measure must be"),
        (lambda v: map_score(v, v, measure="MAP-Char", per="relevant"), "per must be"),
    ],
)
def test_bad_queries_are_named(vectors, call, says):
    with pytest.raises(ParameterError, match=says):
        call(vectors)
