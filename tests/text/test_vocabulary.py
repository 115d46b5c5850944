"""Vocabularies: one row for each word under folding, one for all others, frozen."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext.errors import DataError
from dptext.text.tokens import UNKNOWN, Vocabulary, fold

WORDS = ["doctor", "l'", "café", "straße", UNKNOWN, "don't", "сова"]

lists_of_words = st.lists(st.text(max_size=8), unique_by=fold, max_size=20).map(
    lambda words: [word for word in words if fold(word) != UNKNOWN] + [UNKNOWN]
)


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary(WORDS)


def test_words_keep_their_rows(vocabulary):
    assert vocabulary.words == tuple(WORDS)
    assert len(vocabulary) == len(WORDS)
    assert [vocabulary.row(word) for word in WORDS] == list(range(len(WORDS)))


def test_the_unknown_word_has_a_row_of_its_own_wherever_it_stands(vocabulary):
    assert vocabulary.unknown_row == 4
    assert Vocabulary([UNKNOWN]).unknown_row == 0
    assert vocabulary.row(UNKNOWN) == vocabulary.row("<UNK>") == 4


@pytest.mark.parametrize("word", ["nurse", "", " ", "docto", "doctors", "\ud800", "\x00", "😀", "x" * 10_000])
def test_every_string_outside_is_the_unknown_word(vocabulary, word):
    assert word not in vocabulary
    assert vocabulary.row(word) == vocabulary.unknown_row


@pytest.mark.parametrize(
    ("word", "entry"),
    [
        ("DOCTOR", "doctor"),
        ("Doctor", "doctor"),
        ("doc\u00adtor", "doctor"),
        ("L’", "l'"),
        ("DON’T", "don't"),
        ("cafe\u0301", "café"),
        ("CAFÉ", "café"),
        ("STRASSE", "straße"),
        ("СОВА", "сова"),
    ],
)
def test_look_ups_fold_case_and_spelling(vocabulary, word, entry):
    assert word in vocabulary
    assert vocabulary.row(word) == vocabulary.row(entry) == WORDS.index(entry)


@given(lists_of_words)
def test_every_list_of_words_that_are_distinct_under_folding_is_a_vocabulary(words):
    vocabulary = Vocabulary(iter(words))
    assert [vocabulary.row(word) for word in words] == list(range(len(words)))
    assert all(word in vocabulary for word in words)


@given(lists_of_words, st.text())
def test_the_row_of_a_string_is_always_a_row(words, word):
    vocabulary = Vocabulary(words)
    row = vocabulary.row(word)
    assert 0 <= row < len(vocabulary)
    assert (word in vocabulary) == (fold(vocabulary.words[row]) == fold(word))


def test_a_word_that_stands_twice_is_refused_by_its_rows_and_not_by_its_letters():
    for words, rows in [
        (["secretword", UNKNOWN, "secretword"], "rows 0 and 2"),
        ([UNKNOWN, "secretword", "SecretWord"], "rows 1 and 2"),
        ([UNKNOWN, "secretwordé", "secretworde\u0301"], "rows 1 and 2"),
        ([UNKNOWN, UNKNOWN], "rows 0 and 1"),
    ]:
        with pytest.raises(DataError, match=rows) as caught:
            Vocabulary(words)
        assert "secretword" not in str(caught.value).lower()


@pytest.mark.parametrize("words", [[], ["doctor"], ["unk", "<unk"]])
def test_a_vocabulary_without_the_unknown_word_is_refused(words):
    with pytest.raises(DataError, match="must hold '<unk>'"):
        Vocabulary(words)


def test_a_vocabulary_copies_the_list_that_it_is_made_of():
    words = list(WORDS)
    vocabulary = Vocabulary(words)
    words.clear()
    assert len(vocabulary) == len(WORDS)


@pytest.mark.parametrize("name", ["words", "unknown_row", "new"])
def test_a_vocabulary_cannot_be_changed(name):
    vocabulary = Vocabulary(WORDS)
    with pytest.raises(AttributeError):
        setattr(vocabulary, name, ())
    with pytest.raises(TypeError):
        vocabulary.words[0] = "nurse"


@pytest.mark.parametrize("duplicate", [lambda each: pickle.loads(pickle.dumps(each)), copy.copy, copy.deepcopy])
def test_a_vocabulary_can_be_pickled_and_copied(vocabulary, duplicate):
    same = duplicate(vocabulary)
    assert same.words == vocabulary.words
    assert same.unknown_row == vocabulary.unknown_row
    assert same.row("DOCTOR") == 0
