"""Previews of word replacement: their numbers agree with the mechanism."""

import numpy as np
import pytest

from dptext import TEM
from dptext.methods.words import WordPreviewer
from dptext.privacy.guarantee import best_guesses

TEXT = "The cat, 7 dogs and a dog!"


def preview(vectors, text=TEXT, epsilon=1.5):
    return WordPreviewer(vectors, None).show(text, epsilon)


def test_numbers_are_those_of_the_mechanism(vectors):
    result, row = preview(vectors), vectors.vocabulary.row
    pieces = {piece.text: piece for piece in result.pieces}
    assert "".join(piece.text for piece in result.pieces) == TEXT
    expected = TEM(vectors, epsilon=1.5).probabilities("cat")
    assert pieces["cat"].stays == expected[row("cat")]
    assert all(chance == expected[row(word)] for word, chance in pieces["cat"].replacements)
    likeliest = np.sort(np.delete(expected, row("cat")))[::-1][: len(pieces["cat"].replacements)]
    assert [chance for _, chance in pieces["cat"].replacements] == likeliest.tolist()
    assert pieces[","].stays is None and pieces[","].replacements == ()
    assert pieces["7"].stays is None and pieces["7"].replacements == (("<number>", 1.0),)
    assert pieces["dogs"].stays == 0.0  # unknown
    # the best adversary; the candidates are the whole vocabulary here
    for epsilon in (0.5, 2.0, 6.0):
        attack = preview(vectors, epsilon=epsilon).attack
        table = TEM(vectors, epsilon=epsilon).distributions(list(vectors.words))
        best = best_guesses([table], np.full(len(vectors), 1 / len(vectors)))
        assert (attack.success, attack.chance) == pytest.approx((best.rate, best.blind), abs=1e-12)


def test_the_neighbour_changes_the_rarest_word_and_the_overlap_is_exact(vectors):
    for text in ("cat dog", "cat's dog", "cat, 7 dogs", "Cat qzxv"):
        neighbours = preview(vectors, text, 1.0).neighbours
        words = [(one, other) for one, other in zip(text, neighbours.second, strict=False) if one != other]
        assert neighbours.first == text != neighbours.second and words
        assert 0 < neighbours.overlap < 1
    neighbours = preview(vectors, "cat dog", 1.0).neighbours
    first, second = neighbours.second.split()
    assert first == "cat"
    distances = {word: np.linalg.norm(vectors[word] - vectors["dog"]) for word in vectors.words}
    assert second == sorted(set(distances) - {"dog", "<unk>"}, key=distances.get)[0]
    one, other = (TEM(vectors, epsilon=1.0).probabilities(word) for word in ("dog", second))
    assert neighbours.overlap == pytest.approx(1 - np.abs(one - other).sum() / 2, abs=1e-12)


def test_a_text_without_words_has_no_guarantee(vectors):
    """Its punctuation remains, at any bound between texts of one layout."""
    for text in ("?!... --- ,;:", "123 456 7.5"):
        result = preview(vectors, text)
        assert not result.protects and "there is no guarantee" in result.guarantee
        assert "does not protect" in result.strength
        assert result.neighbours.overlap == 1.0
