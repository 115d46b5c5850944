"""Texts to buckets: which words count, that every text has its own, and masks."""

import zlib

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.representations.embedding_bag import NGrams

NGRAMS = NGrams(most=2, buckets=1 << 20)


def bucket(ngram):
    return zlib.crc32(ngram.encode()) % (1 << 20)


def test_words_then_pairs_hashed():
    found = NGRAMS.of(["The cat, the 7 DOGS!", "cat"])
    words = ["the", "cat", "the", "7", "dogs", "the cat", "cat the", "the 7", "7 dogs"]
    assert found.values.tolist() == [*map(bucket, words), bucket("cat")]
    assert found.starts.tolist() == [0, 9, 10]
    assert len(found) == 2


def test_longer_ngrams_and_single_words():
    assert NGrams(most=1).of(["a b c"]).lengths.tolist() == [3]
    assert NGrams(most=3).of(["a b c", "a b", "a"]).lengths.tolist() == [6, 3, 1]


@pytest.mark.parametrize("text", ["", " ", "...", "\n\t", "!?"])
def test_a_text_without_words_has_no_bucket(text):
    assert NGRAMS.of([text]).lengths.tolist() == [0]


@pytest.mark.parametrize("text", ["\ud800 x", "word " * 20_000, "x" * 100_000, "\u0301" * 500, "\U0001f600\U0001f600"])
def test_no_text_raises(text):
    found = NGRAMS.of([text])
    assert found.values.min(initial=0) >= 0
    assert found.values.max(initial=0) < 1 << 20


def test_a_texts_buckets_hang_on_it_alone():
    together = NGRAMS.of(["one two", "", "three"])
    for place, text in enumerate(["one two", "", "three"]):
        assert together.take(np.array([place])).values.tolist() == NGRAMS.of([text]).values.tolist()
    mixed = together.take(np.array([2, 0, 1, 2]))
    assert mixed.lengths.tolist() == [1, 3, 0, 1]
    assert mixed.values.tolist() == NGRAMS.of(["three", "one two", "", "three"]).values.tolist()
    assert together.take(np.array([], dtype=np.intp)).values.size == 0


def test_no_texts():
    assert len(NGRAMS.of([])) == 0


def test_a_mask_takes_all_ngrams_that_it_stands_in():
    found = NGRAMS.of_words([["one", None, "two", "three"], [None, None], []])
    assert found.lengths.tolist() == [4, 0, 0]
    assert found.values.tolist() == [*map(bucket, ["one", "two", "three", "two three"])]


def test_words_are_folded():
    assert NGRAMS.words_of("CAFÉ don’t, cafe\u0301") == ["café", "do", "n't", "café"]


@pytest.mark.parametrize(
    "options", [{"most": 0}, {"most": 6}, {"most": True}, {"buckets": 0}, {"buckets": 2.0}, {"buckets": 1 << 27}]
)
def test_arguments_are_checked(options):
    with pytest.raises(ParameterError, match="must be an integer from 1 to"):
        NGrams(**options)
