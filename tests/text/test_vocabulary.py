"""Vocabularies: one row for each word under folding, one for all others, frozen."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext.errors import DataError
from dptext.text.tokens import UNKNOWN, Vocabulary, fold
from secrecy import MARKER, assert_error

WORDS = ["doctor", "l'", "café", "straße", UNKNOWN, "don't", "сова"]
lists_of_words = st.lists(st.text(max_size=8), unique_by=fold, max_size=20).map(
    lambda words: [word for word in words if fold(word) != UNKNOWN] + [UNKNOWN]
)


@given(lists_of_words, st.text())
def test_distinct_words_keep_their_rows_and_every_other_string_has_the_unknown_row(words, other):
    vocabulary = Vocabulary(iter(words))
    assert vocabulary.words == tuple(words) and len(vocabulary) == len(words)
    assert [vocabulary.row(word) for word in words] == list(range(len(words)))
    assert all(word in vocabulary for word in words)
    row = vocabulary.row(other)
    assert (other in vocabulary) == (fold(words[row]) == fold(other))
    assert other in vocabulary or row == vocabulary.unknown_row


def test_words_are_looked_up_by_their_folded_form():
    vocabulary = Vocabulary(WORDS)
    for word, entry in (
        ("Doctor", "doctor"),
        ("doc\u00adtor", "doctor"),
        ("DON’T", "don't"),
        ("cafe\u0301", "café"),
        ("STRASSE", "straße"),
        ("СОВА", "сова"),
        ("<UNK>", UNKNOWN),
    ):
        assert vocabulary.row(word) == WORDS.index(entry) and word in vocabulary
    for word in ("nurse", "", " ", "docto", "doctors", "\ud800", "\x00", "😀", "x" * 10_000):
        assert vocabulary.row(word) == vocabulary.unknown_row == 4 and word not in vocabulary


def test_repeated_words_are_refused_by_their_rows_alone_and_the_unknown_word_is_required():
    for words, rows in (
        ([MARKER, UNKNOWN, MARKER], "rows 0 and 2"),
        ([UNKNOWN, MARKER, MARKER.title()], "rows 1 and 2"),
        ([UNKNOWN, MARKER + "é", MARKER + "e\u0301"], "rows 1 and 2"),
        ([UNKNOWN, UNKNOWN], "rows 0 and 1"),
        ([], "must contain '<unk>'"),
        (["unk", "<unk"], "must contain '<unk>'"),
    ):
        assert_error(DataError, lambda words=words: Vocabulary(words), rows)


def test_a_vocabulary_is_frozen_and_can_be_pickled_and_copied():
    words = list(WORDS)
    vocabulary = Vocabulary(words)
    words.clear()
    for name in ("words", "unknown_row", "new"):
        with pytest.raises(AttributeError):
            setattr(vocabulary, name, ())
    for same in (pickle.loads(pickle.dumps(vocabulary)), copy.copy(vocabulary), copy.deepcopy(vocabulary)):
        assert (same.words, same.unknown_row, same.row("DOCTOR")) == (tuple(WORDS), 4, 0)
