"""Words of a text and of its release are paired place by place, and other texts are noticed."""

import pytest

from dptext import TEM, load_vectors, privatize
from dptext.text.tokens import Kind, split
from dptext.words.replacing import Aligner, layout_of_private, layout_of_release

# words that hold characters which may also follow a word
WORDS = ["the", "u.s", "u", "s", "n't", "'s", "l'", "ami", "do", "doctor", "x.y.z"]
VECTORS = load_vectors((WORDS, [[float(n), float(n * n % 7)] for n in range(len(WORDS))]))
MECHANISM = TEM(VECTORS, epsilon=0.1)


def rows_of(text):
    return [VECTORS.vocabulary.row(token.text) for token in split(text) if token.kind is Kind.WORD]


TEXTS = [
    "",
    "...",
    "The U.S. doctor's, don't 7 l'ami: me@x.org (the) 'u.s'.",
    "\n the\tDOCTOR\u00a0lied!\r\n",
    "do do.do do's u.s. x.y.z.",
    "東京の doctor",
    "do \x1f\x1c\x1c\x1c\x1f doctor",  # what a mark is made of, in a text that was not redacted
]


@pytest.mark.parametrize("text", TEXTS)
def test_pairs_are_those_of_the_release(text):
    private = privatize([text], MECHANISM, seed=5).texts[0]
    true, observed = Aligner(MECHANISM).pairs(text, private)
    assert true == rows_of(text)
    assert len(observed) == len(true)
    assert layout_of_private(private) == layout_of_release(text)


def test_what_becomes_of_a_word_is_found():
    """A mechanism that hardly moves anything: every known word is paired with itself."""
    still = TEM(VECTORS, epsilon=200.0, threshold=0.2)
    text = "The u.s. doctor's x.y.z: do!"
    private = privatize([text], still, seed=1).texts[0]
    true, observed = Aligner(still).pairs(text, private)
    assert true == observed


def test_words_beyond_the_budget_are_not_paired():
    budget = TEM(VECTORS, epsilon=1.0, document_epsilon=8.0, max_words=3)
    text = "the doctor's, do the doctor the!"
    private = privatize([text], budget, seed=1).texts[0]
    true, observed = Aligner(budget).pairs(text, private)
    assert true == rows_of(text)[:3]
    assert len(observed) == 3


def test_other_texts_are_noticed():
    for text, private in (
        ("the doctor", "the"),
        ("the doctor", "the ,doctor"),
        ("the", "the "),
        ("the", "zebulon"),
        ("", "the"),
        ("the doctor", ""),
        ("the. " * 40, "u.s. " * 39 + "u.s.s"),
    ):
        assert Aligner(MECHANISM).pairs(text, private) is None


def test_a_long_hostile_text_takes_no_exponential_time():
    """A full stop follows every word, and may also be part of it."""
    text, private = "the.' " * 2000, "u.s.' " * 2000
    assert len(Aligner(MECHANISM).pairs(text, private)[1]) == 2000
    assert Aligner(MECHANISM).pairs(text, private[:-1] + "?") is None
